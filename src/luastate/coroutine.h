#pragma once
// One lua_State that may run or wait: its status, and where it is. On memory that stands still.

#include <string_view>

#include "luastate/dialect.h"
#include "luastate/walk.h"

namespace luaspy {

// lbaselib.c, lcorolib.c: auxstatus; lib_base.c: coroutine.status. What these call "suspended" and
// "dead" is told apart further.
enum class CoroutineStatus : std::uint8_t {
  running,    // the innermost one on a thread
  normal,     // has resumed another one, on a thread
  elsewhere,  // "normal" for coroutine.status, but no thread is in it: it waits on a C stack of its own, as Tarantool's
              // fibers do
  suspended,
  not_started,  // "suspended", at its entry
  dead,         // its function has returned, or it was closed
  failed,       // "dead" by an error, where it stands still
};
inline constexpr std::size_t coroutine_statuses = 7;
std::string_view name(CoroutineStatus status);

// Where a lua_State is among those that are active on threads, as Locator finds them.
enum class Active : std::uint8_t { no, innermost, further_out };

struct CoroutineLook {
  CoroutineStatus status = CoroutineStatus::dead;
  bool hooked = false;  // has_hook()
  bool begun = false;   // `began` is set
  LuaCall began;        // its outermost function
  LuaWalk walk;         // of one that is dead: empty
};

// Does a debug hook (debug.sethook) watch it? LuaJIT has one for all.
bool has_hook(const Memory& memory, const Dialect& lua, Address G, Address L);

// False if there is no lua_State of `G` at `L`, or its calls cannot be read. `look` is reused.
bool look_at_coroutine(const Memory& memory, const Dialect& lua, Address G, Address L, Active active,
                       const WalkLimits& limits, CoroutineLook& look);

// Touches what look_at_coroutine() may need when it has run a little further.
void touch_coroutine(const Memory& memory, const Dialect& lua, Address L);

}  // namespace luaspy
