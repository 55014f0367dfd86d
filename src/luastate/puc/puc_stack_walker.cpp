#include "luastate/puc/puc_stack_walker.h"

#include "luastate/puc/innermost_call.h"
#include "luastate/puc/walk_puc.h"

namespace luaspy {

void PucStackWalker::prefetch(const Locator::StoppedThread& thread, const ActiveState& activation,
                              const WalkLimits& limits, const KnownFunctions& known, ProtoList& protos) const {
  prefetch_puc(thread.memory, puc_layout_of(activation), activation.L, limits, known, protos);
}

void PucStackWalker::likely_calls(const Locator::StoppedThread& thread, const ActiveState& activation,
                                  const WalkLimits& limits, LuaWalk& walk) const {
  walk_puc(thread.memory, thread.memory, puc_layout_of(activation), activation.L, limits, walk);
}

void PucStackWalker::read(const LookMemory& look, bool, const WalkLimits& limits, RunningState& state) {
  const Layout& layout = puc_layout_of(state.activation);
  const Address L = state.activation.L;
  walk_puc(look.stopped, look.objects, layout, L, limits, state.walk);
  if (dynamic_cast<PucNotes*>(state.notes.get()) == nullptr) state.notes = std::make_unique<PucNotes>();
  static_cast<PucNotes&>(*state.notes).errorJmp = look.stopped.get<Address>(L + layout.L_errorJmp).value_or(0);
}

void PucStackWalker::match_natives(RunningState& state, bool innermost, const std::vector<NativeFrame>& natives,
                                   const NativeFunctions& functions, const LookMemory& look, const WalkLimits&) {
  if (innermost) correct_innermost_call(state, live_pc_, natives, functions, look.objects, live_);
}

VmState PucStackWalker::vm_state(const RunningState& state, const std::vector<NativeFrame>& natives,
                                 const NativeFunctions& functions) const {
  if (collects_garbage(state, natives, functions)) return VmState::collecting;
  return !state.walk.calls.empty() && !state.walk.calls[0].is_lua() ? VmState::c : VmState::interpreting;
}

// Only the innermost call of all can be ahead of its saved pc; every other call waits. 5.2 and 5.3
// keep the pc in CallInfo itself.
Address PucStackWalker::pc(const ExecutedCall& executed, Names& names, const Memory& stopped,
                           const NativeFunctions& functions) {
  const RunningState& state = executed.state;
  const LuaCall& call = state.walk.calls[executed.call];
  const Bytecode bytecode = puc_layout_of(state.activation).bytecode;
  const bool in_memory = bytecode == Bytecode::lua52 || bytecode == Bytecode::lua53;
  if (in_memory || !executed.innermost || executed.execute == nullptr) return call.saved_pc;
  const Prototype* const prototype = names.prototype(*state.activation.lua, call);
  return live_pc_.pc(executed, prototype, stopped, functions);
}

void PucStackWalker::confirm_pc(const NativeFrame& execute, const LuaCall& call, const Memory& stopped) {
  live_pc_.observe(execute, call, stopped);
}

}  // namespace luaspy
