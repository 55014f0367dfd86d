#pragma once
// The result of a walk over the calls of a lua_State, for any Lua.

#include <vector>

#include "base/memory.h"

namespace luaspy {

// One call, read and checked. Only numbers: names are found after the thread runs again.
struct LuaCall {
  enum class Kind : std::uint8_t { c, lua, lua_vararg };
  Kind kind = Kind::c;
  // What the call inside of it is to it. The instruction that it stands at says nothing of a debug hook or a __gc
  // metamethod. While a hook runs, a __gc metamethod may be called, and then that is the call inside.
  enum class Inner : std::uint8_t { called, hook, finalizer };
  Inner inner = Inner::called;
  // A native frame of the VM was made for this call. PUC: luaV_execute was entered for this Lua
  // function.
  bool fresh = false;
  // Replaced its caller: the name it was called by is lost, and frames may be missing outside of
  // it.
  bool tail = false;
  bool gap = false;   // the call outside of it could not be read
  bool near = false;  // LuaJIT, Lua: in machine code; saved_pc is that of the nearest snapshot
  // LuaJIT: machine code may keep its slots in registers; those on the stack are outdated.
  bool on_trace = false;
  int lost_tail_calls = 0;  // 5.1: the number of frames that tail calls replaced here
  Address ci = 0;           // PUC: its CallInfo; LuaJIT: its frame, the slot below its base
  // Stack slot that holds the function; 0: inlined into machine code, not on the stack.
  Address func = 0;
  Address closure = 0;  // Lua or C closure; 0 for a light C function
  Address entry = 0;    // C: the function's code
  // C: identifies the function in package.loaded: its entry, or for LuaJIT's fast functions their
  // bytecode.
  Address key = 0;
  Address owner = 0;            // LuaJIT: the C frame of the VM that it runs in (lj_frame.h); 0: not known
  Address proto = 0;            // Lua
  Address code = 0;             // Lua: first instruction
  std::uint32_t size_code = 0;  // Lua: number of instructions
  // Lua: shows whether the Proto at this address is still the one that was seen (mark_of).
  std::uint64_t mark = 0;
  // Lua: next instruction, from CallInfo; may be outdated in the innermost call (5.1, 5.4, 5.5).
  Address saved_pc = 0;

  bool is_lua() const { return kind != Kind::c; }
  bool is_vararg() const { return kind == Kind::lua_vararg; }
  bool has_pc(Address pc) const {
    return is_lua() && pc > code && pc <= code + 4 * std::uint64_t{size_code} && (pc - code) % 4 == 0;
  }
  // Index of the instruction being executed when the next one is at `pc`; 0 if the function is at
  // its entry.
  int index_of(Address pc) const { return has_pc(pc) ? static_cast<int>((pc - code) / 4) - 1 : 0; }
};

struct LuaWalk {
  enum class End : std::uint8_t {
    complete,
    broken,  // a link or several calls could not be trusted: outer calls are missing
  };
  std::vector<LuaCall> calls;  // innermost first
  End end = End::complete;
  int innermost_dropped = 0;        // calls being set up or torn down when the thread was stopped
  bool innermost_left_out = false;  // calls[0] is being set up or torn down: do not show it
  int dropped = 0;                  // other calls that could not be trusted
  bool relocated = false;           // the stack was being moved
  bool has_owners = false;          // LuaJIT: each call records which C frame of the VM it runs in
  // Deep stacks are cut in the middle: `left_out` calls are missing before calls[cut_at]. -1: cut,
  // but not counted.
  std::int64_t left_out = 0;
  std::size_t cut_at = 0;
  LuaCall cut_caller;  // the first missing call: it shows the name of calls[cut_at - 1]

  // The call outside of calls[i]; nullptr if there is none, or it could not be read.
  const LuaCall* caller_of(std::size_t i) const;
  void clear() { *this = LuaWalk{std::move(calls)}, calls.clear(); }
};

struct WalkLimits {
  std::size_t innermost = 400;  // calls kept at each end of a deep stack
  std::size_t outermost = 100;
  bool count_left_out = false;  // also walk the middle, only to count it
};

}  // namespace luaspy
