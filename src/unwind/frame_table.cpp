#include "unwind/frame_table.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <libelf.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace luaspy {
namespace {

using Ops = std::span<const Dwarf_Op>;

// How far below the CFA a function saves registers, as a rule; it does so in one piece.
constexpr std::int32_t near = 128;

struct Based {
  std::uint8_t number;
  std::int32_t offset;
};

std::optional<std::int32_t> small(Dwarf_Word word) {
  const auto value = static_cast<std::int64_t>(word);
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(value);
}

// A register plus an offset: DW_OP_breg0 to 31, or DW_OP_bregx, which libdw makes of DW_CFA_def_cfa.
std::optional<Based> based(const Dwarf_Op& op) {
  const bool extended = op.atom == DW_OP_bregx;
  if (!extended && (op.atom < DW_OP_breg0 || op.atom > DW_OP_breg31)) return std::nullopt;
  const Dwarf_Word number = extended ? op.number : op.atom - DW_OP_breg0;
  const std::optional<std::int32_t> offset = small(extended ? op.number2 : op.number);
  if (number >= register_count || !offset) return std::nullopt;
  return Based{static_cast<std::uint8_t>(number), *offset};
}

bool is_literal(const Dwarf_Op& op) { return op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31; }

// GNU ld, elf_x86_64_eh_frame_plt: sp + 8 + (((pc & 15) >= n) << 3).
bool is_plt(Ops ops) {
  constexpr std::array pattern = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, DW_OP_lit0, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
  constexpr std::size_t pushed = 4;
  if (ops.size() != pattern.size() || !is_literal(ops[pushed]) || ops[1].number != 0) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (i != pushed && ops[i].atom != pattern[i]) return false;
  }
  return true;
}

void read_cfa(Ops ops, FrameRow& row) {
  const std::optional<Based> base = ops.empty() ? std::nullopt : based(ops[0]);
  if (!base) return;
  row.number = base->number;
  row.offset = base->offset;
  if (ops.size() == 1) row.cfa = FrameRow::Cfa::offset;
  if (ops.size() == 2 && ops[1].atom == DW_OP_deref) row.cfa = FrameRow::Cfa::word;
  if (is_plt(ops)) row.cfa = FrameRow::Cfa::plt, row.pushed = static_cast<std::uint8_t>(ops[4].atom - DW_OP_lit0);
}

// libdw.h, dwarf_frame_register: no operations at all are «same value» without and «undefined» with a place of its own; an address otherwise,
// or DW_OP_regx. Expressions start with the CFA on their stack.
std::optional<FrameRow::Slot> read_slot(Dwarf_Frame* frame, unsigned number) {
  using Where = FrameRow::Where;
  Dwarf_Op room[3];
  Dwarf_Op* first = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_register(frame, static_cast<int>(number), room, &first, &count) != 0) return std::nullopt;
  if (count == 0) return FrameRow::Slot{0, 0, first == nullptr ? Where::same : Where::undefined};
  const Ops ops(first, count);
  if (ops[0].atom == DW_OP_regx && count == 1 && ops[0].number < register_count)
    return FrameRow::Slot{0, static_cast<std::uint8_t>(ops[0].number), Where::in_register};
  if (ops[0].atom != DW_OP_call_frame_cfa || count > 2) return std::nullopt;
  if (count == 1) return FrameRow::Slot{0, 0, Where::at_cfa};
  if (ops[1].atom == DW_OP_plus_uconst) {
    const std::optional<std::int32_t> offset = small(ops[1].number);
    return offset ? std::optional(FrameRow::Slot{*offset, 0, Where::at_cfa}) : std::nullopt;
  }
  const std::optional<Based> base = based(ops[1]);
  return base ? std::optional(FrameRow::Slot{base->offset, base->number, Where::at_register}) : std::nullopt;
}

bool read_slots(Dwarf_Frame* frame, FrameRow& row) {
  using Where = FrameRow::Where;
  std::int32_t lowest = 0, highest = std::numeric_limits<std::int32_t>::min();
  const auto keep = [&](unsigned number, FrameRow::Slot& into) {
    const std::optional<FrameRow::Slot> slot = read_slot(frame, number);
    if (!slot) return false;
    into = *slot;
    // elfutils 0.188, x86_64_cfi.c: its rules for what call frame information says nothing of name rax where they mean rbx.
    if (number == rbx && into.where == Where::undefined) into.where = Where::same;
    if (into.where == Where::at_cfa) lowest = std::min(lowest, into.offset), highest = std::max(highest, into.offset);
    return true;
  };
  for (std::size_t i = 0; i < row.saved.size(); ++i) {
    if (!keep(callee_saved_registers[i], row.saved[i])) return false;
  }
  if (!keep(rip, row.return_address)) return false;
  if (lowest >= -near && highest <= -8) row.lowest = lowest;
  return true;
}

// A register that is neither the same nor in the piece of the stack that was read; false if it cannot be read.
bool restore_rare(const NativeFrame& from, const Memory& stack, Address cfa, unsigned which, const FrameRow::Slot& slot, Registers& caller) {
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

FrameTable::FrameTable(std::span<const std::byte> file, Address bias) : bias_(bias) {
  elf_version(EV_CURRENT);
  // libelf does not write through the pointer of elf_memory.
  elf_ = elf_memory(reinterpret_cast<char*>(const_cast<std::byte*>(file.data())), file.size());
  if (elf_ != nullptr) frames_ = dwarf_getcfi_elf(elf_);
}

FrameTable::~FrameTable() {
  if (frames_ != nullptr) dwarf_cfi_end(frames_);
  if (elf_ != nullptr) elf_end(elf_);
}

FrameRow FrameTable::at(Address pc, Address start, Address end) const {
  Dwarf_Frame* found = nullptr;
  if (frames_ == nullptr || pc < start || pc >= end || dwarf_cfi_addrframe(frames_, pc - bias_, &found) != 0) return {};
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(found, std::free);
  FrameRow row;
  Dwarf_Addr from = 0, to = 0;
  const int return_address = dwarf_frame_info(found, &from, &to, &row.interrupted);
  // Section headers lead libdw to the information, program headers whoever asks: in one file they may disagree.
  const bool same_function = from + bias_ >= start && to + bias_ <= end;
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (return_address != rip || !same_function || dwarf_frame_cfa(found, &ops, &count) != 0) return {};
  read_cfa({ops, count}, row);
  return row.cfa != FrameRow::Cfa::unknown && read_slots(found, row) ? row : FrameRow{};
}

static_assert(callee_saved_registers[1] == rbp);

Stepped FrameRow::step(const NativeFrame& from, const Memory& stack, Registers& caller) const {
  if (cfa == Cfa::unknown || !from.registers.knows(number)) return Stepped::unknown;
  Address top = from.registers[number] + static_cast<Address>(std::int64_t{offset});
  if (cfa == Cfa::plt && (from.pc & 15) >= pushed) top += 8;
  if (cfa == Cfa::word) {
    const std::optional<Address> word = stack.get<Address>(top);
    if (!word) return Stepped::unknown;
    top = *word;
  }
  // libunwind takes an undefined rbp for the end, too.
  if (return_address.where == Where::undefined || saved[1].where == Where::undefined) return Stepped::root;
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
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (!restore(callee_saved_registers[i], saved[i])) return Stepped::unknown;
  }
  if (!restore(rip, return_address) || !caller.knows(rip)) return Stepped::unknown;
  caller.set(rsp, top);
  return caller.pc() == from.pc && top == from.sp ? Stepped::unknown : Stepped::caller;
}

}  // namespace luaspy
