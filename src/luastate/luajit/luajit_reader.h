#pragma once
// What a LuaJIT state is doing. The stop reads everything that may be needed. Where the innermost
// frame is, and what a trace has inlined, is decided afterwards, when the native frames are known.

#include <atomic>
#include <cstdint>
#include <vector>

#include "arch/machine.h"
#include "base/sample.h"
#include "luastate/known_functions.h"
#include "luastate/native_functions.h"
#include "luastate/running.h"

namespace luaspy {

class LuajitReader {
 public:
  // `live`: the target's memory after the stop, for traces. `machine`: its processor. Both must
  // outlive the reader.
  LuajitReader(const Memory& live, const Machine& machine) : machine_(machine), traces_(live) {}

  // Forgets what is known about global states: after an exec, another one may be at the same
  // address.
  void forget() { traces_.forget(); }

  // In the stop: touches what the other steps will need. `memory` is the snapshot; `stack` is the
  // thread's stack in it.
  void touch(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack,
             const Activation& activation, const WalkLimits& limits, const KnownFunctions& known) const;

  // After the stop: reads what decides where things are. `innermost`: it is the innermost state
  // that runs on the thread.
  static void read(const LookMemory& look, const Activation& activation, bool innermost, LuajitState& state);
  // The trace whose machine code contains `pc`, nullptr if there is none. Valid until the next
  // call.
  const Trace* trace_at(const Activation& activation, Address pc);
  // Then finds its calls, with the native frames.
  void walk(RunningState& state, bool innermost, const std::vector<NativeFrame>& natives,
            const NativeFunctions& functions, const LookMemory& look, const WalkLimits& limits);
  // For the innermost state.
  static VmState vm_state(const RunningState& state, const std::vector<NativeFrame>& natives,
                          const NativeFunctions& functions);

 private:
  static void read_fields(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack,
                          const Activation& activation, LuajitState& state);
  // Marks the calls whose slots a trace works on: those with their base at `from` or above.
  static void mark_on_trace(Address from, LuaWalk& walk);

  const Machine& machine_;
  Traces traces_;
  // How far above the global_State the fields are that say which exit a trace has taken: parent,
  // then exitno << 32. 0: not known yet. Another thread may be in touch().
  std::atomic<std::uint64_t> exit_fields_ = 0;
};

}  // namespace luaspy
