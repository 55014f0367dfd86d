#pragma once
// The memory that belongs to a heap: all that an analysis, its texts and its files may ask for. Found
// by reading it: through a HeapCopy or UsedPages, which remember what was read.

#include "base/memory.h"
#include "luastate/coroutine.h"

namespace luaspy {

// What an analysis does not read of an object, but what may be asked for: contents of strings and
// userdata, names of variables, calls. `look` is reused.
void use_contents(const Memory& memory, const Lua& lua, Address G, const HeapObject& object, CoroutineLook& look);

// Reads every object, with what it refers to and its contents. False if a list of the collector
// could not be followed to its end.
bool use_heap(const Memory& memory, const Lua& lua, Address G);

}  // namespace luaspy
