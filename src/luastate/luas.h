#pragma once
// Every Lua that luaspy reads: makes what both implementations, puc/ and luajit/, have. Beside it, only what
// looks at their machine code includes anything of these (tests/layering.cmake).

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "luastate/lua.h"
#include "luastate/stack_walker.h"

namespace luaspy {

// The layouts for a version string of an image ("5.4.4", "5.4", "5.?", "LuaJIT 2.1.0-beta3"), best
// first; none for Luau. They live as long as luaspy.
std::vector<const Lua*> layouts_for(const std::string& version);

// All layouts, the newest series first: for a process whose files cannot be read.
std::vector<const Lua*> all_layouts();

// A reader of each kind, for one target. `live`: its memory as it is now. `objects`: the same, but
// it may keep what was read since the look began. `machine`: its processor. All must outlive the
// readers.
std::array<std::unique_ptr<StackWalker>, lua_kinds> make_stack_walkers(const Memory& live, const Memory& objects,
                                                                       const Machine& machine);

}  // namespace luaspy
