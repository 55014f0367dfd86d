#pragma once
// The steps of a look in PUC. Everything is read in the stop, or does not change while it lives.
// The native frames decide only what the innermost call is, and its pc.

#include "luastate/puc/live_pc.h"
#include "luastate/puc/puc_notes.h"
#include "luastate/stack_walker.h"

namespace luaspy {

class PucStackWalker : public StackWalker {
 public:
  // `live`: the target's memory as it is now, for code. `machine`: its processor. Both must outlive
  // the reader.
  PucStackWalker(const Memory& live, const Machine& machine) : live_(live), live_pc_(machine) {}

  void prefetch(const Locator::StoppedThread& thread, const ActiveState& activation, const WalkLimits& limits,
                const KnownFunctions& known, ProtoList& protos) const override;
  void likely_calls(const Locator::StoppedThread& thread, const ActiveState& activation, const WalkLimits& limits,
                    LuaWalk& walk) const override;
  void read(const LookMemory& look, bool innermost, const WalkLimits& limits, RunningState& state) override;
  void match_natives(RunningState& state, bool innermost, const std::vector<NativeFrame>& natives,
                     const NativeFunctions& functions, const LookMemory& look, const WalkLimits& limits) override;
  VmState vm_state(const RunningState& state, const std::vector<NativeFrame>& natives,
                   const NativeFunctions& functions) const override;
  Address pc(const ExecutedCall& call, Names& names, const Memory& stopped, const NativeFunctions& functions) override;
  void confirm_pc(const NativeFrame& execute, const LuaCall& call, const Memory& stopped) override;

 private:
  const Memory& live_;
  LivePc live_pc_;
};

}  // namespace luaspy
