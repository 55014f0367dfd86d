#pragma once
// What a LuaJIT state is doing. The stop reads what may be needed; where the innermost frame is,
// and what a trace has inlined, is settled afterwards, when the native frames are known.

#include <vector>

#include "base/sample.h"
#include "luastate/known_functions.h"
#include "luastate/locate.h"
#include "luastate/luajit/traces.h"
#include "luastate/luajit/walk_luajit.h"
#include "luastate/native_functions.h"

namespace luaspy {

class LuajitReader {
 public:
  // `live`: the target's memory after the stop, for traces. It has to outlive the reader.
  explicit LuajitReader(const Memory& live) : traces_(live) {}

  // What was known of global states: after an exec another one may be at the same address.
  void forget() { traces_.forget(); }

  // Beside its walk. Of an innermost state, but for the first and the last line.
  struct State {
    std::vector<Address> cframes;          // of the VM, innermost first
    Address jit_base = 0;                  // of the trace that this state runs; 0: none
    bool has_jit_base = false;             // there is one, be it believable or not
    std::int32_t vmstate = 0;              // global_State's
    Address saved_base = 0, saved_pc = 0;  // L->base; SAVE_PC of the innermost C frame
    MovedStack moved;                      // the Lua stack was being moved
    Trace trace;                           // object 0: none
  };

  // In the stop: touches what the rest will need. `memory` is the snapshot; `stack` the thread's
  // stack in it.
  static void touch(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack,
                    const Activation& activation, const WalkLimits& limits, const KnownFunctions& known);

  // After it: what decides where things are. `objects`: the snapshot, and where it has nothing, the
  // memory as it is now.
  static void read(const Memory& memory, const Memory& objects, const Registers& registers,
                   const Locator::ThreadStack& stack, const Activation& activation, bool innermost, State& state);
  // The trace whose machine code has `pc`, nullptr if there is none. Valid until the next call.
  const Trace* trace_at(const Activation& activation, Address pc);
  // The calls.
  void refine(const std::vector<NativeFrame>& natives, const Registers& registers, const NativeFunctions& functions,
              const Memory& objects, const Activation& activation, bool innermost, const WalkLimits& limits,
              State& state, LuaWalk& walk);
  // Of the innermost state.
  static VmState vm_state(const std::vector<NativeFrame>& natives, const NativeFunctions& functions,
                          const Activation& activation, const State& state);

 private:
  static void read_fields(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack,
                          const Activation& activation, State& state);
  // Marks the calls whose slots a trace works on: those with their base at `from` or above.
  static void mark_on_trace(Address from, LuaWalk& walk);
  static VmState vm_state_said(const Activation& activation, const State& state);
  bool leaving_trace(const Activation& activation, const State& state, const std::vector<NativeFrame>& natives,
                     const NativeFunctions& functions, const Memory& memory, InlinedCode& code);

  Traces traces_;
};

}  // namespace luaspy
