#include "unwind/frame_row.h"

namespace luaspy {
namespace {

// Restores a register that neither keeps its value nor is in the part of the stack that was read;
// false if it cannot be read.
bool restore_rare(const NativeFrame& from, const Memory& stack, Address cfa, unsigned which, const FrameRow::Slot& slot,
                  Registers& caller) {
  using Where = FrameRow::Where;
  if (slot.where == Where::undefined) return true;
  if (slot.where != Where::at_cfa && !from.registers.knows(slot.number)) return slot.where == Where::in_register;
  if (slot.where == Where::in_register) return caller.set(which, from.registers[slot.number]), true;
  const Address base = slot.where == Where::at_cfa ? cfa : from.registers[slot.number];
  const std::optional<Address> value = stack.get<Address>(base + static_cast<Address>(std::int64_t{slot.offset}));
  if (value) caller.set(which, *value);
  return value.has_value();
}

}  // namespace

Stepped FrameRow::step(const Machine& machine, const NativeFrame& from, const Memory& stack, Registers& caller) const {
  if (cfa == Cfa::unknown || !from.registers.knows(number)) return Stepped::unknown;
  Address top = from.registers[number] + static_cast<Address>(std::int64_t{offset});
  if (cfa == Cfa::plt && (from.pc & 15) >= pushed) top += 8;
  if (cfa == Cfa::word) {
    const std::optional<Address> word = stack.get<Address>(top);
    if (!word) return Stepped::unknown;
    top = *word;
  }
  // libunwind also treats an undefined frame pointer as the end.
  if (return_address.where == Where::undefined || saved[machine.frame_pointer_place].where == Where::undefined)
    return Stepped::root;
  std::array<std::byte, near> below;
  const auto depth = static_cast<std::size_t>(-lowest);
  const bool have_below = depth != 0 && stack.read(top - depth, std::span(below).first(depth));
  caller.forget_all();
  const auto restore = [&](unsigned which, const Slot& slot) {
    if (slot.where == Where::at_cfa && have_below) {
      caller.set(which, load<Address>(below, depth - static_cast<std::size_t>(-slot.offset)));
    } else if (slot.where == Where::same) {
      if (from.registers.knows(which)) caller.set(which, from.registers[which]);
    } else {
      return restore_rare(from, stack, top, which, slot, caller);
    }
    return true;
  };
  const std::span<const std::uint8_t> kept = machine.callee_saved;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!restore(kept[i], saved[i])) return Stepped::unknown;
  }
  constexpr unsigned pc = Registers::pc_number;
  if (!restore(pc, return_address) || !caller.knows(pc)) return Stepped::unknown;
  caller.set_sp(top);
  return caller.pc() == from.pc && top == from.sp ? Stepped::unknown : Stepped::caller;
}

}  // namespace luaspy
