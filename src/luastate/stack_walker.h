#pragma once
// What one implementation of Lua does in the steps of a look (lua_reader.h), and what it learns of
// the target meanwhile: PucStackWalker, LuajitStackWalker. luas.h makes them.

#include "base/sample.h"
#include "luastate/known_functions.h"
#include "luastate/names.h"
#include "luastate/native_functions.h"
#include "luastate/proto_list.h"
#include "luastate/running.h"
#include "luastate/trace.h"

namespace luaspy {

// A Lua function, and the native frame in which it runs.
struct ExecutedCall {
  const RunningState& state;
  std::size_t call = 0;                  // number in state.walk.calls
  bool innermost = false;                // of all calls on the thread
  const NativeFrame* execute = nullptr;  // nullptr: none is known
  bool is_top = false;                   // the thread is in `execute` itself
};

class StackWalker {
 public:
  virtual ~StackWalker() = default;

  // Forgets what is known about global states: after an exec, another one may be at the same
  // address.
  virtual void forget() {}

  // In the stop: touches what the other steps will need. Functions that are `known` are left out. Of the
  // others, the Protos of Lua functions that may be called are added to `protos`, innermost first.
  virtual void prefetch(const Locator::StoppedThread& thread, const ActiveState& activation, const WalkLimits& limits,
                        const KnownFunctions& known, ProtoList& protos) const = 0;

  // In the stop, after prefetch(): the calls that the state may have, innermost first, for whoever touches what they
  // use. Which of them it has is only known with the native frames. `walk` is reused.
  virtual void likely_calls(const Locator::StoppedThread& thread, const ActiveState& activation,
                            const WalkLimits& limits, LuaWalk& walk) const = 0;

  // After the stop: the calls, as far as they do not depend on the native frames. `innermost`: it
  // is the innermost state that runs on the thread.
  virtual void read(const LookMemory& look, bool innermost, const WalkLimits& limits, RunningState& state) = 0;
  // With the native frames: the calls are complete and correct.
  virtual void match_natives(RunningState& state, bool innermost, const std::vector<NativeFrame>& natives,
                             const NativeFunctions& functions, const LookMemory& look, const WalkLimits& limits) = 0;
  // For the innermost state.
  virtual VmState vm_state(const RunningState& state, const std::vector<NativeFrame>& natives,
                           const NativeFunctions& functions) const = 0;

  // The next instruction of a Lua function. `names` has its Prototype.
  virtual Address pc(const ExecutedCall& call, Names& names, const Memory& stopped,
                     const NativeFunctions& functions) = 0;
  // `execute` waits for something that it has called, so the saved pc of `call` is exact.
  virtual void confirm_pc(const NativeFrame&, const LuaCall&, const Memory&) {}

  // The trace whose machine code contains `pc`; nullptr: none. Valid until the next call.
  virtual const Trace* trace_at(const ActiveState&, Address) { return nullptr; }
  // The function in which a trace starts. False if it can no longer be read.
  virtual bool read_start(const ActiveState&, const Trace&, LuaCall&) const { return false; }
};

}  // namespace luaspy
