#pragma once
// A call as a frame that a person reads.

#include <string>

#include "luastate/names.h"
#include "luastate/native_functions.h"
#include "luastate/walk.h"

namespace luaspy {

// A C function that Lua has no name for gets that of its symbol, and its file is its module. `pc`:
// Lua: the next instruction.
Frame label_call(Names& names, const NativeFunctions& functions, const Names::Context& context, const LuaCall& call,
                 const LuaCall* caller, Address pc);
// What is shown outside of a call, innermost first: tail calls, what could not be read.
void add_markers(const LuaCall& call, Stack& stack);
// For what is missing in the middle of a deep stack. `counted`: with its number.
std::string left_out_text(const LuaWalk& walk, bool counted);

}  // namespace luaspy
