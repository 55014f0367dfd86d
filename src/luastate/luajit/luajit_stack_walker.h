#pragma once
// What a LuaJIT state is doing. The stop reads everything that may be needed. Where the innermost
// frame is, and what a trace has inlined, is decided afterwards, when the native frames are known.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "arch/machine.h"
#include "luastate/luajit/luajit_state.h"
#include "luastate/stack_walker.h"

namespace luaspy {

class LuajitStackWalker : public StackWalker {
 public:
  // `live`: the target's memory after the stop, for traces. `machine`: its processor. Both must
  // outlive the reader.
  LuajitStackWalker(const Memory& live, const Machine& machine) : live_(live), machine_(machine), traces_(live) {}

  void forget() override { traces_.forget(); }
  void prefetch(const Locator::StoppedThread& thread, const ActiveState& activation, const WalkLimits& limits,
                const KnownFunctions& known, ProtoList& protos) const override;
  void likely_calls(const Locator::StoppedThread& thread, const ActiveState& activation, const WalkLimits& limits,
                    LuaWalk& walk) const override;
  // Reads only what decides where things are: the calls come with the native frames.
  void read(const LookMemory& look, bool innermost, const WalkLimits& limits, RunningState& state) override;
  void match_natives(RunningState& state, bool innermost, const std::vector<NativeFrame>& natives,
                     const NativeFunctions& functions, const LookMemory& look, const WalkLimits& limits) override;
  VmState vm_state(const RunningState& state, const std::vector<NativeFrame>& natives,
                   const NativeFunctions& functions) const override;
  Address pc(const ExecutedCall& call, Names& names, const Memory& stopped, const NativeFunctions& functions) override;
  const Trace* trace_at(const ActiveState& activation, Address pc) override;
  bool read_start(const ActiveState& activation, const Trace& trace, LuaCall& start) const override;

 private:
  static void read_fields(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack,
                          const ActiveState& activation, LuajitState& state);
  // Where the innermost frame of a state may be, on its Lua stack.
  struct Bases {
    Address bottom = 0, limit = 0;   // of the stack
    std::array<Address, 4> bases{};  // each once, 0: none
    Address top = 0;                 // the highest of them
  };
  Bases bases_of(const Memory& memory, const Registers& registers, const ActiveState& activation,
                 const LuajitState& state) const;
  // Marks the calls whose slots a trace works on: those with their base at `from` or above.
  static void mark_on_trace(Address from, LuaWalk& walk);

  const Memory& live_;
  const Machine& machine_;
  Traces traces_;
  // How far above the global_State the fields are that say which exit a trace has taken: parent,
  // then exitno << 32. 0: not known yet. Another thread may be in prefetch().
  std::atomic<std::uint64_t> exit_fields_ = 0;
  mutable std::atomic<std::uint64_t> last_trace_ = 0;  // identifies the one whose functions prefetch() touched last
};

}  // namespace luaspy
