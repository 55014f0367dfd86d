#pragma once
// LuaJIT leaves no mark where a tail call replaced a function (BC_CALLT): the caller's instruction
// shows what was called first, not what runs now. This finds out whether the two are the same, by
// what the caller's expression refers to.

#include "luastate/luajit/luajit_layout.h"
#include "luastate/value_path.h"
#include "luastate/walk.h"

namespace luaspy {

// Compares the function at the end of `path` in `caller` with `callee`. `live`: the target's memory
// as it is now. `stopped`: what the stop read, for the caller's registers; if LuaCall.func is 0,
// they are not in memory.
Callee check_callee(const Memory& live, const Memory& stopped, const LuajitLayout& layout, Address G,
                    const ValuePath& path, const LuaCall& caller, const LuaCall& callee);

}  // namespace luaspy
