#include "unwind/call_frame.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>

#include "unwind/encoded_bytes.h"

namespace luaspy {
namespace {

constexpr std::size_t most_instructions = 1 << 14;  // for one function: luaV_execute has a few hundred
constexpr std::size_t deepest_remembered = 16;

// How to restore one of the caller's registers.
struct Rule {
  enum class Kind : std::uint8_t {
    same,
    undefined,
    at_cfa,
    in_register,
    expression,
    computed
  };  // expression: where the value is stored; computed: the value itself
  Kind kind = Kind::same;
  std::int64_t value = 0;  // at_cfa: offset; in_register: number
  std::span<const std::byte> expression;
};

struct Rules {
  // Registers without a rule keep their value: with a link register, the return address is in it, too.
  // Without one, the return address must have a rule.
  explicit Rules(const Machine& machine) {
    if (machine.link_register == Machine::no_register) return_address.kind = Rule::Kind::undefined;
  }
  enum class Cfa : std::uint8_t { unknown, offset, expression } cfa = Cfa::unknown;
  std::uint64_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  std::span<const std::byte> cfa_expression;
  std::array<Rule, Machine::most_callee_saved> saved;  // of Machine::callee_saved
  Rule return_address;

  // That of the register that DWARF calls `number`; nullptr if it is not kept.
  Rule* of(const Machine& machine, std::uint64_t number) {
    if (number == machine.dwarf_return_address) return &return_address;
    const auto place = std::ranges::find(machine.callee_saved, machine.of_dwarf(number));
    return place != machine.callee_saved.end() ? &saved[static_cast<std::size_t>(place - machine.callee_saved.begin())]
                                               : nullptr;
  }
};

// DWARF 5, 6.4.2: executes the instructions of a CIE and an FDE that apply at one pc.
class Interpreter {
 public:
  Interpreter(const Machine& machine, const CallFrameEntry& entry)
      : machine_(machine), entry_(entry), rules_(machine), initial_(machine) {}

  // False if the instructions are invalid or too many.
  bool run(Address pc) {
    if (!execute(EncodedBytes(entry_.initial), ~Address{0})) return false;
    initial_ = rules_;
    location_ = entry_.start;
    remembered_.clear();
    return execute(EncodedBytes(entry_.instructions, entry_.instructions_at), pc);
  }
  const Rules& rules() const { return rules_; }

 private:
  bool execute(EncodedBytes bytes, Address pc) {
    while (!bytes.empty()) {
      const unsigned opcode = bytes.read<std::uint8_t>(), low = opcode & 0x3f;
      if (++steps_ > most_instructions) return false;
      switch (opcode & 0xc0) {
        case DW_CFA_advance_loc:
          advance(low);
          break;
        case DW_CFA_offset:
          set(low, {Rule::Kind::at_cfa, factored(bytes.uleb()), {}});
          break;
        case DW_CFA_restore:
          restore(low);
          break;
        default:
          if (!move(opcode, bytes) && !define_cfa(opcode, bytes) && !define_register(opcode, bytes) &&
              !keep_state(opcode))
            return false;
      }
      if (bad_ || !bytes.good()) return false;
      if (location_ > pc) return true;
    }
    return true;
  }

  void advance(std::uint64_t delta) { location_ += delta * entry_.code_factor; }
  std::int64_t factored(std::uint64_t offset) const {
    return static_cast<std::int64_t>(offset * static_cast<std::uint64_t>(entry_.data_factor));
  }
  std::int64_t factored(std::int64_t offset) const { return factored(static_cast<std::uint64_t>(offset)); }
  void set(std::uint64_t number, const Rule& rule) {
    if (Rule* const kept = rules_.of(machine_, number)) *kept = rule;
  }
  void restore(std::uint64_t number) {
    if (Rule* const kept = rules_.of(machine_, number)) *kept = *initial_.of(machine_, number);
  }

  bool move(unsigned opcode, EncodedBytes& bytes) {
    switch (opcode) {
      case DW_CFA_nop:
        return true;
      case DW_CFA_advance_loc1:
        return advance(bytes.read<std::uint8_t>()), true;
      case DW_CFA_advance_loc2:
        return advance(bytes.read<std::uint16_t>()), true;
      case DW_CFA_advance_loc4:
        return advance(bytes.read<std::uint32_t>()), true;
      case DW_CFA_set_loc: {
        const std::optional<Address> to = read_pointer(bytes, entry_.encoding);
        bad_ |= !to || *to < location_;
        if (!bad_) location_ = *to;
        return true;
      }
      case DW_CFA_GNU_args_size:
        return (void)bytes.uleb(), true;
      default:
        return false;
    }
  }

  void cfa_is(std::uint64_t number, std::int64_t offset) {
    rules_.cfa = Rules::Cfa::offset, rules_.cfa_register = number, rules_.cfa_offset = offset;
  }

  bool define_cfa(unsigned opcode, EncodedBytes& bytes) {
    switch (opcode) {
      case DW_CFA_def_cfa:
      case DW_CFA_def_cfa_sf: {
        const std::uint64_t number = bytes.uleb();
        cfa_is(number, opcode == DW_CFA_def_cfa ? static_cast<std::int64_t>(bytes.uleb()) : factored(bytes.sleb()));
        return true;
      }
      case DW_CFA_def_cfa_register:
        bad_ |= rules_.cfa != Rules::Cfa::offset;
        return rules_.cfa_register = bytes.uleb(), true;
      case DW_CFA_def_cfa_offset:
        bad_ |= rules_.cfa != Rules::Cfa::offset;
        return rules_.cfa_offset = static_cast<std::int64_t>(bytes.uleb()), true;
      case DW_CFA_def_cfa_offset_sf:
        bad_ |= rules_.cfa != Rules::Cfa::offset;
        return rules_.cfa_offset = factored(bytes.sleb()), true;
      case DW_CFA_def_cfa_expression:
        rules_.cfa = Rules::Cfa::expression;
        return rules_.cfa_expression = bytes.skip(bytes.uleb()), true;
      default:
        return false;
    }
  }

  bool define_register(unsigned opcode, EncodedBytes& bytes) {
    using Kind = Rule::Kind;
    if (opcode < DW_CFA_offset_extended || opcode == DW_CFA_remember_state || opcode == DW_CFA_restore_state)
      return false;
    const std::uint64_t number = bytes.uleb();
    switch (opcode) {
      case DW_CFA_offset_extended:
        return set(number, {Kind::at_cfa, factored(bytes.uleb()), {}}), true;
      case DW_CFA_offset_extended_sf:
        return set(number, {Kind::at_cfa, factored(bytes.sleb()), {}}), true;
      case DW_CFA_restore_extended:
        return restore(number), true;
      case DW_CFA_undefined:
        return set(number, {Kind::undefined, 0, {}}), true;
      case DW_CFA_same_value:
        return set(number, {Kind::same, 0, {}}), true;
      case DW_CFA_register:
        return set(number, {Kind::in_register, static_cast<std::int64_t>(bytes.uleb()), {}}), true;
      case DW_CFA_expression:
        return set(number, {Kind::expression, 0, bytes.skip(bytes.uleb())}), true;
      case DW_CFA_val_offset:
      case DW_CFA_val_offset_sf:
        return set(number, {Kind::computed, 0, {}}), (void)bytes.uleb(), true;
      case DW_CFA_val_expression:
        return set(number, {Kind::computed, 0, {}}), (void)bytes.skip(bytes.uleb()), true;
      default:
        return false;
    }
  }

  bool keep_state(unsigned opcode) {
    if (opcode == DW_CFA_remember_state) {
      if (remembered_.size() == deepest_remembered) return false;
      return remembered_.push_back(rules_), true;
    }
    if (opcode != DW_CFA_restore_state || remembered_.empty()) return false;
    rules_ = remembered_.back();
    return remembered_.pop_back(), true;
  }

  const Machine& machine_;
  const CallFrameEntry& entry_;
  Rules rules_, initial_;
  std::vector<Rules> remembered_;
  Address location_ = 0;
  std::size_t steps_ = 0;
  bool bad_ = false;
};

struct Based {
  std::uint8_t number;
  std::int32_t offset;
};

std::optional<std::int32_t> small(std::int64_t value) {
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
    return std::nullopt;
  return static_cast<std::int32_t>(value);
}

std::optional<Based> based(const Machine& machine, std::uint64_t dwarf_number, std::int64_t offset) {
  const unsigned number = machine.of_dwarf(dwarf_number);
  const std::optional<std::int32_t> near_enough = small(offset);
  if (number == Machine::no_register || !near_enough) return std::nullopt;
  return Based{static_cast<std::uint8_t>(number), *near_enough};
}

// Takes DW_OP_breg0 to 31, or DW_OP_bregx.
std::optional<Based> read_based(const Machine& machine, EncodedBytes& expression) {
  const unsigned operation = expression.read<std::uint8_t>();
  std::uint64_t number = operation - unsigned{DW_OP_breg0};
  if (operation == DW_OP_bregx) number = expression.uleb();
  else if (operation < DW_OP_breg0 || operation > DW_OP_breg31) return std::nullopt;
  const std::int64_t offset = expression.sleb();
  return expression.good() ? based(machine, number, offset) : std::nullopt;
}

// GNU ld, elf_x86_64_eh_frame_plt: sp + 8 + (((pc & 15) >= n) << 3). `rest` is what comes after
// sp + 8; returns n.
std::optional<std::uint8_t> pushed_in_plt(const Machine& machine, std::span<const std::byte> rest) {
  constexpr std::array<std::uint8_t, 9> pattern = {DW_OP_breg16, 0,          DW_OP_lit15, DW_OP_and, DW_OP_lit0,
                                                   DW_OP_ge,     DW_OP_lit3, DW_OP_shl,   DW_OP_plus};
  constexpr std::size_t n = 4;
  if (rest.size() != pattern.size() || machine.of_dwarf(16) != Registers::pc_number) return std::nullopt;
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(rest[i]); };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (i != n && byte(i) != pattern[i]) return std::nullopt;
  }
  if (byte(n) < DW_OP_lit0 || byte(n) > DW_OP_lit31) return std::nullopt;
  return static_cast<std::uint8_t>(byte(n) - DW_OP_lit0);
}

bool put_cfa(const Machine& machine, const Rules& rules, FrameRow& row) {
  std::optional<Based> base;
  FrameRow::Cfa form = FrameRow::Cfa::offset;
  if (rules.cfa == Rules::Cfa::offset) base = based(machine, rules.cfa_register, rules.cfa_offset);
  if (rules.cfa == Rules::Cfa::expression) {
    EncodedBytes expression(rules.cfa_expression);
    base = read_based(machine, expression);
    const std::span<const std::byte> rest = expression.rest();
    const std::optional<std::uint8_t> pushed = pushed_in_plt(machine, rest);
    if (base && base->number == Registers::sp_number && pushed) form = FrameRow::Cfa::plt, row.pushed = *pushed;
    else if (rest.size() == 1 && rest[0] == std::byte{DW_OP_deref}) form = FrameRow::Cfa::word;
    else if (!rest.empty()) return false;
  }
  if (!base) return false;
  row.cfa = form, row.number = base->number, row.offset = base->offset;
  return true;
}

std::optional<FrameRow::Slot> slot_of(const Machine& machine, const Rule& rule) {
  using Where = FrameRow::Where;
  switch (rule.kind) {
    case Rule::Kind::same:
      return FrameRow::Slot{0, 0, Where::same};
    case Rule::Kind::undefined:
      return FrameRow::Slot{0, 0, Where::undefined};
    case Rule::Kind::at_cfa: {
      const std::optional<std::int32_t> offset = small(rule.value);
      return offset ? std::optional(FrameRow::Slot{*offset, 0, Where::at_cfa}) : std::nullopt;
    }
    case Rule::Kind::in_register: {
      const unsigned number = machine.of_dwarf(static_cast<std::uint64_t>(rule.value));
      if (number == Machine::no_register) return std::nullopt;
      return FrameRow::Slot{0, static_cast<std::uint8_t>(number), Where::in_register};
    }
    case Rule::Kind::expression: {
      EncodedBytes expression(rule.expression);
      const std::optional<Based> base = read_based(machine, expression);
      return base && expression.empty() ? std::optional(FrameRow::Slot{base->offset, base->number, Where::at_register})
                                        : std::nullopt;
    }
    case Rule::Kind::computed:
      return std::nullopt;
  }
  return std::nullopt;
}

bool put_slots(const Machine& machine, const Rules& rules, FrameRow& row) {
  std::int32_t lowest = 0, highest = std::numeric_limits<std::int32_t>::min();
  const std::size_t count = machine.callee_saved.size();
  for (std::size_t i = 0; i <= count; ++i) {
    std::optional<FrameRow::Slot> slot = slot_of(machine, i < count ? rules.saved[i] : rules.return_address);
    if (!slot) return false;
    if (i == count && slot->where == FrameRow::Where::same && machine.link_register != Machine::no_register)
      slot = FrameRow::Slot{0, machine.link_register, FrameRow::Where::in_register};
    (i < count ? row.saved[i] : row.return_address) = *slot;
    if (slot->where == FrameRow::Where::at_cfa)
      lowest = std::min(lowest, slot->offset), highest = std::max(highest, slot->offset);
  }
  if (lowest >= -FrameRow::near && highest <= -8) row.lowest = lowest;
  return true;
}

}  // namespace

FrameRow row_at(const Machine& machine, const CallFrameEntry& entry, Address pc) {
  Interpreter interpreter(machine, entry);
  FrameRow row;
  row.interrupted = entry.interrupted;
  if (entry.return_address != machine.dwarf_return_address || !interpreter.run(pc)) return {};
  return put_cfa(machine, interpreter.rules(), row) && put_slots(machine, interpreter.rules(), row) ? row : FrameRow{};
}

}  // namespace luaspy
