#include "luastate/puc/innermost_call.h"

#include <algorithm>

#include "luastate/bytecode.h"
#include "luastate/puc/puc_notes.h"

namespace luaspy {

// The set-up and the end of a call change stack slots and CallInfo in an order that the compiler
// chose, so for some instructions the innermost call is a mixture of two. luaV_execute's own
// variables are always consistent.
void correct_innermost_call(RunningState& state, LivePc& live_pc, const std::vector<NativeFrame>& natives,
                            const NativeFunctions& functions, const Memory& stack, const Memory& live) {
  LuaWalk& walk = state.walk;
  if (walk.calls.empty() || walk.innermost_dropped != 0) return;
  LuaCall& call = walk.calls[0];
  if (!call.is_lua()) {
    // From 5.4 on, luaD_poscall writes the results over the function's slot before it sets L->ci to
    // the caller's (ldo.c).
    walk.innermost_left_out = !natives.empty() && functions.in_core_module(natives[0]) &&
                              !functions.may_be_code(call.entry);
    return;
  }
  const auto execute = std::ranges::find_if(natives,
                                            [&](const NativeFrame& frame) { return functions.executes_lua(frame); });
  if (execute == natives.end()) return;
  const LuaCall* const caller = walk.caller_of(0);
  const Bytecode bytecode = puc_layout_of(state.activation).bytecode;
  const Address known_pc = live_pc.sure_pc(*execute, stack);
  if (bytecode == Bytecode::lua51) {
    // In a recursion, a tail call mark is left over from before.
    const bool is_other = !call.has_pc(known_pc) || call.tail;
    walk.innermost_left_out = execute != natives.begin() && caller != nullptr && known_pc != 0 &&
                              known_pc == caller->saved_pc && is_other;
    return;
  }
  if (execute == natives.begin())
    // It works on this call, except during a few instructions.
    live_pc.observe_executed(*execute, call.ci, stack);
  const Address executed = live_pc.executed(*execute, stack);
  if (executed == 0) return;
  walk.innermost_left_out = caller != nullptr && executed == caller->ci;
  const bool writes_first = bytecode == Bytecode::lua54 || bytecode == Bytecode::lua55;
  if (!writes_first || call.tail || executed != call.ci || execute == natives.begin()) return;
  // luaD_pretailcall puts the callee into its caller's place, and marks that last. Not all
  // compilers keep pc in a place of its own meanwhile.
  const Address saved_pc = stack.get<Address>(call.ci + puc_layout_of(state.activation).ci_savedpc).value_or(0);
  for (const Address pc : {saved_pc, known_pc}) {
    if (!plausible_pointer(pc, 4) || call.has_pc(pc) || pc == call.code) continue;
    call.tail |= is_tail_call(bytecode, live.get<std::uint32_t>(pc - 4).value_or(0));
  }
}

// A finalizer that is being called is not the collector. Before it has a call, and if it is a C
// function that has no frame (5.2: luaD_precall; a jump to another function), only the protected call
// shows it, which has a record on the stack: from 5.2 on, lgc.c, GCTM, calls finalizers protected.
bool collects_garbage(const RunningState& state, const std::vector<NativeFrame>& natives,
                      const NativeFunctions& functions) {
  const LuaCall* const innermost = state.walk.calls.empty() ? nullptr : &state.walk.calls[0];
  const bool is_protected = puc_layout_of(state.activation).bytecode != Bytecode::lua51;
  const Address errorJmp = static_cast<const PucNotes&>(*state.notes).errorJmp;
  Address collector = 0;  // sp of the outermost collector frame
  const auto collects = [&] { return collector != 0 && !(is_protected && errorJmp != 0 && errorJmp < collector); };
  for (const NativeFrame& native : natives) {
    const bool executes = functions.executes_lua(native);
    if (innermost == nullptr || innermost->is_lua() ? executes : native.function == innermost->entry) return collects();
    if (executes) break;
    if (functions.collects(native)) collector = native.sp;
  }
  if (innermost == nullptr) return collects();  // the host has called Lua's API
  return is_protected && !innermost->is_lua() && collects();
}

}  // namespace luaspy
