#pragma once
// What a walk over the calls of a lua_State finds, whichever Lua it is.

#include <vector>

#include "base/memory.h"

namespace luaspy {

// One call, read and checked. Numbers only: names are made of it when the thread runs again.
struct LuaCall {
  bool is_lua = false;
  bool fresh = false;  // a native frame of the VM was made for this call. PUC: a Lua function that luaV_execute was
                       // entered anew for
  bool tail = false;   // replaced its caller: the name it was called by is lost, frames may be missing outside of it
  bool is_vararg = false;   // Lua
  bool hooked = false;      // is running a debug hook
  bool gap = false;         // the call outside of it could not be read
  bool near = false;        // LuaJIT: in machine code; saved_pc is that of the nearest snapshot
  bool on_trace = false;    // LuaJIT: machine code may have its slots in registers; those on the stack are old
  bool finalizer = false;   // the call inside of this one is a __gc metamethod
  int lost_tail_calls = 0;  // 5.1: how many frames tail calls replaced here
  Address ci = 0;           // PUC: its CallInfo; LuaJIT: its frame, the slot below its base
  Address func = 0;         // slot of the stack that holds the function; 0: inlined into machine code, not on the stack
  Address closure = 0;      // Lua or C closure; 0 for a light C function
  Address entry = 0;        // C: the function's code
  Address key = 0;    // C: what tells the function apart in package.loaded: its entry, or of LuaJIT's fast functions
                      // their bytecode
  Address owner = 0;  // LuaJIT: the C frame of the VM that it runs in (lj_frame.h); 0: not said
  Address proto = 0;  // Lua
  Address code = 0;   // Lua: first instruction
  std::uint32_t size_code = 0;  // Lua: instructions
  std::uint64_t mark = 0;  // Lua: what tells whether the Proto at this address is still the one that was seen (mark_of)
  Address saved_pc = 0;    // Lua: next instruction, as CallInfo has it; may lag in the innermost call (5.1, 5.4, 5.5)

  bool has_pc(Address pc) const {
    return is_lua && pc > code && pc <= code + 4 * std::uint64_t{size_code} && (pc - code) % 4 == 0;
  }
  // Index of the instruction being executed when the next one is at `pc`: 0 if the function is at
  // its entry.
  int index_of(Address pc) const { return has_pc(pc) ? static_cast<int>((pc - code) / 4) - 1 : 0; }
};

struct LuaWalk {
  enum class End : std::uint8_t {
    complete,
    broken,  // a link or several calls could not be believed: outer calls are missing
  };
  std::vector<LuaCall> calls;  // innermost first
  End end = End::complete;
  int innermost_dropped = 0;        // calls being set up or torn down at the instant of the stop
  bool innermost_left_out = false;  // calls[0] is set up or torn down: not to be shown
  int dropped = 0;                  // other calls that could not be believed
  bool relocated = false;           // the stack was being moved
  bool has_owners = false;          // LuaJIT: each call says which C frame of the VM it runs in
  // Deep stacks are cut in the middle: `left_out` calls are missing before calls[cut_at]. -1: cut,
  // but not counted.
  std::int64_t left_out = 0;
  std::size_t cut_at = 0;
  LuaCall cut_caller;  // the first of the missing ones: it knows what calls[cut_at - 1] is called

  // The call outside of calls[i]; nullptr if there is none, or it could not be read.
  const LuaCall* caller_of(std::size_t i) const;
  void clear() { *this = LuaWalk{std::move(calls)}, calls.clear(); }
};

struct WalkLimits {
  std::size_t innermost = 400;  // calls kept at each end of a deep stack
  std::size_t outermost = 100;
  bool count_left_out = false;  // walk the middle too, only to count it
};

}  // namespace luaspy
