#pragma once
// Walks the CallInfo chain of a PUC lua_State: the Lua and C functions that are active in it.
//
//   lua_State ──ci──▶ CallInfo ──previous──▶ CallInfo ──previous──▶ … ──▶ base_ci (the host; not a function)
//                        │ func                 5.1: the same as an array, base_ci … ci
//                        ▼
//   stack:  … │ function │ arguments, locals … │ function │ …
//               └▶ LClosure ──▶ Proto ──▶ code ◀── savedpc

#include <vector>

#include "luastate/layout.h"
#include "memory.h"

namespace luaspy {

// One CallInfo, read and checked. Numbers only: names are made of it when the thread runs again.
struct LuaCall {
  bool is_lua = false;
  bool fresh = false;      // Lua: luaV_execute was entered anew for this call
  bool tail = false;       // replaced its caller: the name it was called by is lost, frames may be missing outside of it
  bool is_vararg = false;  // Lua
  bool hooked = false;     // is running a debug hook
  bool finalizer = false;  // the call inside of this one is a __gc metamethod
  int lost_tail_calls = 0; // 5.1: how many frames tail calls replaced here
  Address ci = 0;
  Address func = 0;        // slot of the stack that holds the function
  Address closure = 0;     // Lua or C closure; 0 for a light C function
  Address entry = 0;       // C: the function's code
  Address key = 0;         // C: what tells the function apart in package.loaded: its entry, or for LuaJIT's fast functions the address of
                           // their bytecode
  Address proto = 0;       // Lua
  Address code = 0;        // Lua: first instruction
  std::uint32_t size_code = 0;  // Lua: instructions
  std::uint64_t mark = 0;  // Lua: what tells whether the Proto at this address is still the one that was seen (mark_of)
  Address saved_pc = 0;    // Lua: next instruction, as CallInfo has it; may lag in the innermost call (5.1, 5.4, 5.5)

  bool has_pc(Address pc) const { return is_lua && pc > code && pc <= code + 4 * std::uint64_t{size_code} && (pc - code) % 4 == 0; }
  // Index of the instruction being executed when the next one is at `pc`: 0 if the function is at its entry.
  int index_of(Address pc) const { return has_pc(pc) ? static_cast<int>((pc - code) / 4) - 1 : 0; }
};

struct LuaWalk {
  enum class End : std::uint8_t {
    complete,
    broken,   // a link or several calls could not be believed: outer calls are missing
  };
  std::vector<LuaCall> calls;      // innermost first
  End end = End::complete;
  int innermost_dropped = 0;       // calls being set up or torn down at the instant of the stop
  int dropped = 0;                 // other calls that could not be believed
  bool relocated = false;          // the stack was being moved
  // Deep stacks are cut in the middle: `left_out` calls are missing before calls[cut_at]. -1: cut, but not counted.
  std::int64_t left_out = 0;
  std::size_t cut_at = 0;
  LuaCall cut_caller;              // the first of the missing ones: it knows what calls[cut_at - 1] is called

  // The call outside of calls[i]; nullptr if there is none, or it could not be read.
  const LuaCall* caller_of(std::size_t i) const;
  void clear() { *this = LuaWalk{std::move(calls)}, calls.clear(); }
};

// A number made of the fields of a Proto that stay as they are while it lives. `proto` are its layout.p_size bytes. 0 if
// they are no Proto.
std::uint64_t mark_of(const Layout& layout, std::span<const std::byte> proto);

struct WalkLimits {
  std::size_t innermost = 400;   // calls kept at each end of a deep stack
  std::size_t outermost = 100;
  bool count_left_out = false;   // walk the middle too, only to count it
};

// Reads through `memory` whatever it needs; never more than the limits allow. `walk` is reused: its vector keeps its room.
void walk_puc(const Memory& memory, const Layout& layout, Address L, const WalkLimits& limits, LuaWalk& walk);

}  // namespace luaspy
