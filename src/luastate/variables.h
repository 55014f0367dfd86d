#pragma once
// The variables of the calls of a walk: those that a call has at this instant, as debug.getlocal
// and debug.getupvalue would return them, and their values.
//
// PUC, a call's part of the stack (ldo.c, ltm.c):
//   5.1–5.3:  │ function │ nil … │ varargs … │ registers …
//             ▲ func                         ▲ base
//   5.4, 5.5: │ function │ nil … │ varargs … │ function │ registers …
//                                            ▲ func
// LuaJIT: as in 5.4, with two frames, the inner one of type VARG (lj_frame.h); `ci` is the inner
// one.

#include <string>
#include <string_view>
#include <vector>

#include "luastate/reported.h"
#include "luastate/value_text.h"
#include "luastate/walk.h"

namespace luaspy {

// Why the locals of a call of `walk` cannot be told; empty if nothing prevents it. `pc`: its next instruction.
std::string_view why_no_locals(const Lua& lua, const LuaWalk& walk, const LuaCall& call, Address pc);

// The part of the Lua stack of a walk that machine code works on: what is in memory there is outdated.
struct TracePart {
  Address base = 0, limit = 0;  // 0: no machine code runs
  bool has(Address slot) const { return base != 0 && slot >= base && slot < limit; }
};
TracePart trace_part(const Memory& memory, const Lua& lua, Address L, const LuaWalk& walk);

class VariableReader {
 public:
  // `walk` belongs to `state`. While this is used, `memory` must not change: the thread is stopped, or
  // it is a copy. `names` must read the same target; all arguments but `state` must outlive it.
  VariableReader(const Memory& memory, const ActiveState& state, const LuaWalk& walk, Names& names,
                 const ValueLimits& limits, CountingRoom& room);

  // The variables of walk.calls[call]. `pc`: its next instruction, if it is a Lua function.
  CallVariables variables(std::size_t call, Address pc);
  // What a coroutine that waits has passed to coroutine.yield, its innermost call, if a Lua function
  // called that. coroutine.resume has moved the values away (lcorolib.c, auxresume; vm_x64.dasc,
  // coroutine_resume_wrap), but they are still where they were: the collector clears what is above
  // the top before it frees it (lgc.c, lj_gc.c, GCSatomic).
  CallVariables yielded();

 private:
  Slots c_slots(std::size_t index) const;
  void add_locals(const LuaCall& call, const Prototype& prototype, int pc, CallVariables& result);
  void add_slots(Variable::Kind kind, std::string_view name, Slots slots, CallVariables& result);
  void add_upvalues(const LuaCall& call, const Prototype* prototype, CallVariables& result);
  bool add(Variable::Kind kind, std::string name, Address slot, CallVariables& result);

  const Memory& memory_;
  const Lua& lua_;  // knows the types of numbers
  Address L_;
  const LuaWalk& walk_;
  Names& names_;
  ValueLimits limits_;
  ValueText values_;
  TracePart trace_;
};

}  // namespace luaspy
