#include "luastate/luajit/innermost_frame.h"

#include <algorithm>
#include <iterator>

namespace luaspy {

InnermostFrame::InnermostFrame(const Machine& machine, Traces& traces, const Of& of, const Natives& natives,
                               const LookMemory& look)
    : machine_(machine),
      traces_(traces),
      activation_(of.activation),
      layout_(luajit_layout_of(of.activation)),
      innermost_(of.innermost),
      natives_(natives.frames),
      functions_(natives.functions),
      stopped_(look.stopped),
      memory_(of.memory),
      state_(of.state),
      registers_(machine.luajit, look.registers),
      vm_(std::ranges::find_if(natives_, [&](const NativeFrame& frame) {
        return functions_.executes_lua(frame) && (state_.cframes.empty() || frame.cfa > state_.cframes[0]);
      })) {
  find(innermost_ && vm_ != natives_.end() && vm_ == natives_.begin() && !vm_->in_trace);
  if (top_.base == 0) use_saved();
}

void InnermostFrame::find(bool in_vm) {
  const bool left = has_left_trace(in_vm);
  if (innermost_ && !left) trace_base_ = find_trace_base();
  if (innermost_ && state_.jit_base != 0 && !left) find_in_trace();
  else if (in_vm) find_in_interpreter();
  else if (!innermost_ || !find_at_trace_exit()) find_outside_of_call();
}

// vm_x64.dasc, ->vm_exit_interp: BASE and PC are the interpreter's again before jit_base is 0. No
// other code that runs for machine code has its sp at the C frame.
bool InnermostFrame::has_left_trace(bool in_vm) const {
  return in_vm && !state_.cframes.empty() && vm_->sp == state_.cframes[0] && can_be(registers_.base, registers_.pc);
}

Address InnermostFrame::find_trace_base() const {
  constexpr Address all = 1;
  const VmState said = vm_state_said(layout_, state_);
  if (state_.has_jit_base || said == VmState::machine_code || runs_trace())
    return state_.jit_base != 0 ? state_.jit_base : all;
  return said == VmState::exiting ? state_.saved_base : 0;
}

void InnermostFrame::find_in_trace() {
  top_.base = state_.jit_base;
  const Trace* trace = nullptr;
  if (runs_trace()) trace = traces_.find(layout_, activation_.G, vm_->lookup);
  else if (state_.vmstate > 0) trace = traces_.numbered(layout_, activation_.G, static_cast<unsigned>(state_.vmstate));
  if (trace == nullptr) return;
  state_.trace = *trace;
  const Address at = vm_ != natives_.end() && trace->contains(vm_->lookup) ? vm_->lookup : trace->mcode;
  code_ = traces_.decode(activation_.G, activation_.L, *trace, at, state_.jit_base, memory_);
  top_ = {code_.base, code_.pc, code_.frames};
  if (!can_be(top_.base, 0) && code_.frames.empty()) top_ = {state_.jit_base, 0, {}};
}

void InnermostFrame::find_in_interpreter() {
  top_ = interpreter_top({memory_, layout_, activation_.L}, registers_.base, registers_.pc, state_.saved_pc, entering_);
  if (top_.base == 0 && can_be(registers_.c_base, registers_.pc)) top_ = {registers_.c_base, registers_.pc, {}};
}

// lj_trace.c, lj_trace_exit: writes the frames that the trace had inlined to the stack
// (trace_exit_cp, called by lj_vm_cpcall), then SAVE_PC. Until then L->base has the value of
// jit_base. False if the thread is not there.
bool InnermostFrame::find_at_trace_exit() {
  constexpr Address most_above_cframe = 4096;
  const auto is_vm = [&](const NativeFrame& frame) { return functions_.executes_lua(frame); };
  auto vm = std::ranges::find_if(natives_, is_vm);
  bool restores = false;
  if (vm != natives_.end() && functions_.trace_exit(*vm) == nullptr) {
    restores = true;
    vm = std::find_if(std::next(vm), natives_.end(), is_vm);
  }
  const TraceExit* const exit = vm != natives_.end() ? functions_.trace_exit(*vm) : nullptr;
  if (exit == nullptr || vm->cfa > activation_.boundary + most_above_cframe) return false;
  if (restores && vm_state_said(layout_, state_) != VmState::exiting) return false;
  const Address dispatch = VmRegisters(machine_.luajit, vm->registers).dispatch;
  const auto at = [&](std::int32_t offset) { return dispatch + static_cast<Address>(std::int64_t{offset}); };
  exit_fields_ = {at(exit->parent), at(exit->exitno)};
  // The next exit changes them, so they must be from the stop.
  const auto parent = stopped_.get<std::uint32_t>(exit_fields_.parent),
             number = stopped_.get<std::uint32_t>(exit_fields_.number);
  if (!parent || !number) return false;
  const Trace* const trace = traces_.numbered(layout_, activation_.G, *parent);
  if (trace == nullptr) return false;
  code_ = traces_.at_exit(activation_.G, activation_.L, *trace, *number, state_.saved_base, memory_);
  if (code_.pc == 0 || (!restores && code_.pc - 4 == state_.saved_pc)) return false;
  // lj_snap_restore sets L->base last: the exit's pc and the innermost link fit there then. Without
  // inlined frames both bases are the same, so whether slots are restored is not known.
  const bool restored = !code_.frames.empty() && is_base(memory_, layout_, activation_.L, state_.saved_base, code_.pc,
                                                         code_.frames.front().link);
  if (restored) top_ = {state_.saved_base, code_.pc, {}};
  else top_ = {code_.base, code_.pc, code_.frames};
  trace_base_ = state_.saved_base;
  return true;
}

// The VM waits for something that it has called.
void InnermostFrame::find_outside_of_call() {
  if (vm_ == natives_.end()) return;
  const VmRegisters waiting(machine_.luajit, vm_->registers);
  if (can_be(state_.saved_base, waiting.pc)) top_ = {state_.saved_base, waiting.pc, {}};
  else if (innermost_ && can_be(waiting.c_base, waiting.pc)) top_ = {waiting.c_base, waiting.pc, {}};
}

void InnermostFrame::use_saved() {
  Address pc = 0;
  if (innermost_ && can_be(state_.saved_base, registers_.pc)) pc = registers_.pc;
  else if (can_be(state_.saved_base, state_.saved_pc)) pc = state_.saved_pc;
  top_ = {state_.saved_base, pc, {}};
}

}  // namespace luaspy
