#pragma once
// One lua_State that may run or wait: its status, and where it is. For memory that does not change.

#include <cstdint>
#include <string_view>

#include "luastate/lua.h"

namespace luaspy {

// lbaselib.c, lcorolib.c: auxstatus; lib_base.c: coroutine.status. Their "suspended" and "dead" are
// divided further here.
enum class CoroutineStatus : std::uint8_t {
  running,  // the innermost one on a thread
  normal,   // has resumed another coroutine, on a thread
  // "normal" for coroutine.status, but no thread is in it: it waits on a C stack of its own, as
  // Tarantool's fibers do.
  elsewhere,
  suspended,
  not_started,  // "suspended", at its first instruction
  dead,         // its function has returned, or the coroutine was closed
  failed,       // "dead" by an error, still at the place of the error
};
inline constexpr std::size_t coroutine_statuses = 7;
std::string_view name(CoroutineStatus status);

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
