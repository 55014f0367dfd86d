#include "stack/vm_frames.h"

#include <algorithm>
#include <array>

#include "arch/x86_64/calls.h"

namespace luaspy {

VmFrames::VmFrames(const Modules& modules, const NativeCode& native, std::vector<Address> cframes, bool on_trace,
                   TraceOf trace_of)
    : modules_(modules),
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
  std::array<std::byte, longest_call> before{};
  const Module* const module = modules_.find(address);
  if (module == nullptr || !module->executes(address - 1) || !module->read(address - before.size(), before))
    return false;
  return call_before(address, before).kind != CallSite::Kind::none;
}

bool VmFrames::leave(Address cframe, unsigned frame_size, bool saves_r12_r13, const Memory& stack,
                     Registers& caller) const {
  const Address cfa = cframe + frame_size;
  const auto restore = [&](unsigned number, unsigned below) {
    if (const std::optional<Address> value = stack.get<Address>(cfa - below)) caller.set(number, *value);
    else caller.forget(number);
  };
  restore(rip, 8);
  restore(rbp, 16);
  restore(rbx, 24);
  restore(r15, 32);
  restore(r14, 40);
  if (saves_r12_r13) restore(r13, 48), restore(r12, 56);
  caller.set(rsp, cfa);
  return caller.pc() != 0;
}

bool VmFrames::step(const NativeFrame& from, const Memory& stack, Registers& caller) const {
  const VmCode* vm = native_.vm_at(from.lookup);
  if (vm == nullptr && !meets_trace(from)) return false;
  caller = {};
  for (const unsigned number : callee_saved_registers) {
    if (from.registers.knows(number)) caller.set(number, from.registers[number]);
  }
  // The C frame is being built or removed. This happens at the innermost frame only: elsewhere the
  // VM waits for something it called.
  if (const std::optional<unsigned> depth = vm != nullptr && from.step == Step::registers ? vm->depth_at(from.pc)
                                                                                          : std::nullopt) {
    const Address cfa = from.sp + *depth;
    if (const std::optional<Address> address = stack.get<Address>(cfa - 8); address && follows_a_call(*address)) {
      // A register that is not pushed yet, or already popped, still holds its value.
      for (const auto& [number, below] :
           {std::pair{rbp, 16u}, std::pair{rbx, 24u}, std::pair{r15, 32u}, std::pair{r14, 40u}}) {
        if (below > *depth) continue;
        if (const std::optional<Address> value = stack.get<Address>(cfa - below)) caller.set(number, *value);
      }
      caller.set(rip, *address);
      caller.set(rsp, cfa);
      return true;
    }
  }
  const auto nearest = std::ranges::lower_bound(cframes_, from.sp);
  if (vm != nullptr && (nearest == cframes_.end() || *nearest != from.sp)) {
    // The frame is built, but not in the chain yet or no longer: then sp points at it.
    const std::optional<Address> address = stack.get<Address>(from.sp + vm->frame_size - 8);
    if (address && follows_a_call(*address)) return leave(from.sp, vm->frame_size, vm->saves_r12_r13, stack, caller);
  }
  if (nearest == cframes_.end()) return false;
  if (vm == nullptr || on_trace_) {
    // lj_asm_x86.h: traces save their caller's r12 and r13 in the C frame's lowest word and in the
    // word below it.
    if (const std::optional<Address> value = stack.get<Address>(*nearest)) caller.set(r12, *value);
    if (const std::optional<Address> value = stack.get<Address>(*nearest - 8)) caller.set(r13, *value);
  }
  for (const VmCode* const other : native_.vms()) {
    if (vm != nullptr && other != vm) continue;
    const std::optional<Address> address = stack.get<Address>(*nearest + other->frame_size - 8);
    if (vm != nullptr || (address && follows_a_call(*address)))
      return leave(*nearest, other->frame_size, other->saves_r12_r13, stack, caller);
  }
  return false;
}

}  // namespace luaspy
