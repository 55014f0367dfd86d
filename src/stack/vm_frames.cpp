#include "stack/vm_frames.h"

#include <algorithm>
#include <array>

namespace luaspy {

VmFrames::VmFrames(const Machine& machine, const Modules& modules, const NativeCode& native,
                   std::vector<Address> cframes, bool on_trace, TraceOf trace_of)
    : machine_(machine),
      modules_(modules),
      native_(native),
      cframes_(std::move(cframes)),
      on_trace_(on_trace),
      trace_of_(std::move(trace_of)) {
  std::ranges::sort(cframes_);
}

bool VmFrames::in_trace(Address lookup) const {
  return std::ranges::any_of(traces_,
                             [&](const CodeRange& range) { return lookup >= range.start && lookup < range.end; });
}

bool VmFrames::meets_trace(const NativeFrame& frame) const {
  if (in_trace(frame.lookup)) return true;
  if (modules_.find(frame.lookup) != nullptr) return false;
  const CodeRange range = trace_of_(frame);
  if (range.end == 0) return false;
  traces_.push_back(range);
  return true;
}

bool VmFrames::follows_a_call(Address address) const {
  std::array<std::byte, MachineCode::most_call_bytes> bytes;
  const auto before = std::span(bytes).first(machine_.code.call_bytes);
  const Module* const module = modules_.find(address);
  if (module == nullptr || !module->executes(address - 1) || !module->read(address - before.size(), before))
    return false;
  return machine_.code.call_before(address, before).kind != CallSite::Kind::none;
}

std::optional<Address> VmFrames::return_address(const NativeFrame& from, const VmCode& vm, Address cfa, unsigned built,
                                                const Memory& stack) const {
  const auto saved = std::ranges::find(vm.saved, Registers::pc_number, &VmCode::Saved::number);
  const bool is_saved = saved != vm.saved.end() && saved->below <= built;
  const std::optional<Address> address = machine_.return_address(
      from.registers, cfa - machine_.bytes_on_return(), is_saved ? std::optional(cfa - saved->below) : std::nullopt,
      stack);
  return address && follows_a_call(*address) ? address : std::nullopt;
}

bool VmFrames::leave(Address cframe, const VmCode& vm, const Memory& stack, Registers& caller) {
  const Address cfa = cframe + vm.frame_size;
  for (const VmCode::Saved& saved : vm.saved) {
    if (const std::optional<Address> value = stack.get<Address>(cfa - saved.below)) caller.set(saved.number, *value);
    else caller.forget(saved.number);
  }
  caller.set_sp(cfa);
  return caller.pc() != 0;
}

bool VmFrames::step(const NativeFrame& from, const Memory& stack, Registers& caller) const {
  const VmCode* vm = native_.vm_at(from.lookup);
  if (vm == nullptr && !meets_trace(from)) return false;
  caller = {};
  for (const unsigned number : machine_.callee_saved) {
    if (from.registers.knows(number)) caller.set(number, from.registers[number]);
  }
  // The C frame is being built or removed. This happens at the innermost frame only: elsewhere the
  // VM waits for something it called.
  if (const std::optional<unsigned> depth = vm != nullptr && from.step == Step::registers ? vm->depth_at(from.pc)
                                                                                          : std::nullopt) {
    const Address cfa = from.sp + *depth;
    if (const std::optional<Address> address = return_address(from, *vm, cfa, *depth, stack)) {
      // A register that is not pushed yet, or already popped, still holds its value.
      for (const VmCode::Saved& saved : vm->saved) {
        if (saved.below > *depth) continue;
        if (const std::optional<Address> value = stack.get<Address>(cfa - saved.below))
          caller.set(saved.number, *value);
      }
      caller.set_pc(*address);
      caller.set_sp(cfa);
      return true;
    }
  }
  const auto nearest = std::ranges::lower_bound(cframes_, from.sp);
  if (vm != nullptr && (nearest == cframes_.end() || *nearest != from.sp)) {
    // The frame is built, but not in the chain yet or no longer: then sp points at it.
    if (return_address(from, *vm, from.sp + vm->frame_size, vm->frame_size, stack))
      return leave(from.sp, *vm, stack, caller);
  }
  if (nearest == cframes_.end()) return false;
  for (const VmCode* const other : native_.vms()) {
    if (vm != nullptr && other != vm) continue;
    if (vm == nullptr && !return_address(from, *other, *nearest + other->frame_size, other->frame_size, stack))
      continue;
    if (vm == nullptr || on_trace_) {
      for (const VmCode::SavedByTraces& saved : other->saved_by_traces) {
        const std::optional<Address> value = stack.get<Address>(*nearest + static_cast<Address>(saved.above));
        if (value) caller.set(saved.number, *value);
      }
    }
    return leave(*nearest, *other, stack, caller);
  }
  return false;
}

}  // namespace luaspy
