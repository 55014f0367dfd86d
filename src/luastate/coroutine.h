#pragma once
// One lua_State that may run or wait: its status, and where it is. For memory that does not change.

#include <cstdint>
#include <string_view>

#include "luastate/lua.h"
#include "luastate/reported.h"

namespace luaspy {

// The position of a lua_State among those that are active on threads, as found by Locator.
enum class Active : std::uint8_t { no, innermost, further_out };

struct CoroutineLook {
  CoroutineStatus status = CoroutineStatus::dead;
  bool hooked = false;  // it has a debug hook (debug.sethook)
  bool begun = false;   // `began` is set
  LuaCall began;        // its outermost function
  Address error = 0;    // failed: the slot of the error, if that is a string; 0: not known
  LuaWalk walk;         // empty for a dead one
};

struct CoroutineAt {
  const Lua& lua;
  Address G, L;
  Active active = Active::no;
};

// False if there is no lua_State of `at.G` at `at.L`, or its calls cannot be read. `look` is reused.
bool look_at_coroutine(const Memory& memory, const CoroutineAt& at, const WalkLimits& limits, CoroutineLook& look);

// Touches what look_at_coroutine() may need after the coroutine has run a little further.
void prefetch_coroutine(const Memory& memory, const LuaStacks& lua, Address L);

}  // namespace luaspy
