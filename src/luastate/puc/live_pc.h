#pragma once
// The bytecode pc of the innermost Lua function. 5.1, 5.4 and 5.5 keep it in a local variable of
// luaV_execute and write it to CallInfo only now and then, so the saved one is outdated in up to
// half of the samples. The local variable is in a callee-saved register, or in a slot of
// luaV_execute's frame where the compiler does not optimise. The place is learned: in every
// luaV_execute that waits for a callee the saved pc is exact, so the place that equals it there is
// the right one. In the same way, LivePc learns where luaV_execute keeps the CallInfo that it works
// on; L->ci is ahead of that while a call is being set up.

#include <array>
#include <unordered_map>

#include "arch/machine.h"
#include "luastate/native_functions.h"
#include "luastate/prototype.h"
#include "luastate/puc/walk_puc.h"
#include "luastate/stack_walker.h"

namespace luaspy {

class LivePc {
 public:
  // `machine`: the target's; it must outlive this.
  explicit LivePc(const Machine& machine) : machine_(machine) {}

  // Learns from a luaV_execute frame that called something: `call`, its innermost Lua call, has an
  // exact saved pc.
  void observe(const NativeFrame& execute, const LuaCall& call, const Memory& stack);
  // Learns from a luaV_execute frame that is working on a call. This excludes places that are only
  // updated for callees.
  void observe_executed(const NativeFrame& execute, Address ci, const Memory& stack);
  // The CallInfo that luaV_execute works on (5.2 and later), and the pc, each from the learned
  // place; 0 if that place is not certain.
  Address executed(const NativeFrame& execute, const Memory& stack) const;
  Address sure_pc(const NativeFrame& execute, const Memory& stack) const;

  // The next instruction of a call, the innermost one of its state, whose luaV_execute frame is known;
  // its saved_pc if no known place holds a pc of this function. `prototype`: that of the call, nullptr if
  // it could not be read.
  Address pc(const ExecutedCall& executed, const Prototype* prototype, const Memory& stack,
             const NativeFunctions& functions);

 private:
  static constexpr std::size_t frame_slots = 96;  // number of words below the CFA that are observed
  static constexpr std::size_t places = Machine::most_callee_saved + frame_slots;
  using Scores = std::array<int, places>;
  struct Evidence {
    Scores score{}, executed{};  // of the pc; of the CallInfo
    bool hinted = false;
  };
  static void observe(Scores& scores, const std::array<Address, places>& now, Address value, int penalty);
  static Address surest(const Scores& scores, const std::array<Address, places>& now, int needed);
  static bool is_after_new_table(const Prototype& prototype, const LuaCall& call, Address pc);
  std::array<Address, places> values(const NativeFrame& execute, const Memory& stack) const;

  const Machine& machine_;
  std::unordered_map<Address, Evidence> by_function_;  // by start of luaV_execute
};

}  // namespace luaspy
