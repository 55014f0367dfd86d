#include "arch/x86_64/loads.h"

#include <array>
#include <utility>

#include "arch/x86_64/instruction.h"

namespace luaspy::x86_64 {
namespace {

constexpr std::size_t rdi_number = 7;  // as instructions number registers

// Executes a few instructions with known values: what compilers make of p->a[i]->b, and of a comparison with 0.
class Execution {
 public:
  Execution(std::span<const std::byte> code, Address function, Address argument, const Memory& memory)
      : code_(code), function_(function), memory_(memory) {
    registers_[rdi_number] = argument;
  }

  // False: it does something else, before it returns.
  bool run() {
    constexpr int most_instructions = 32;
    for (int i = 0; i < most_instructions && at_ < code_.size(); ++i) {
      const std::optional<Instruction> instruction = read_instruction(code_, at_);
      if (!instruction) return false;
      const std::size_t begin = std::exchange(at_, at_ + instruction->length);
      if (instruction->flow() == Instruction::Flow::end) return instruction->opcode == 0xc3;  // RET
      if (has_prefix(std::to_integer<unsigned>(code_[begin])) && !does_nothing(*instruction)) return false;
      if (!execute(*instruction)) return false;
    }
    return false;
  }
  std::vector<Load>& loads() { return loads_; }

 private:
  // Of a smaller operand, a segment, a repetition.
  static bool has_prefix(unsigned byte) {
    return byte == 0x66 || byte == 0x64 || byte == 0x65 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x3e;
  }
  static bool does_nothing(const Instruction& instruction) {  // ENDBR64, NOP
    return instruction.two_byte && (instruction.opcode == 0x1e || instruction.opcode == 0x1f);
  }

  bool execute(const Instruction& instruction) {
    const unsigned op = instruction.opcode;
    if (instruction.flow() != Instruction::Flow::on) return branch(instruction);
    if (instruction.two_byte) {
      if (does_nothing(instruction)) return true;
      if (op != 0xb6 && op != 0xb7) return false;
      return move(instruction, op == 0xb6 ? 1 : 2);  // MOVZX
    }
    if (op == 0x90) return true;
    if (op == 0x8b) return move(instruction, instruction.wide() ? 8 : 4);
    if (op == 0x8d) {  // LEA
      const std::optional<Address> address = address_of(instruction);
      if (address) registers_[instruction.reg()] = *address;
      return address && instruction.wide();
    }
    if (op == 0x85 && instruction.mode() == 3 && instruction.reg() == instruction.rm()) {  // TEST
      const std::optional<std::uint64_t> value = registers_[instruction.rm()];
      if (value) is_zero_ = instruction.wide() ? *value == 0 : (*value & 0xffff'ffff) == 0;
      return value.has_value();
    }
    return false;
  }

  bool branch(const Instruction& instruction) {
    const unsigned op = instruction.two_byte ? instruction.opcode - 0x10 : instruction.opcode;
    const bool is_jump = instruction.flow() == Instruction::Flow::jump;
    if (!is_jump && ((op != 0x74 && op != 0x75) || !is_zero_)) return false;  // JE, JNE
    if (is_jump || *is_zero_ == (op == 0x74)) at_ += static_cast<std::size_t>(instruction.immediate);
    return true;
  }

  bool move(const Instruction& instruction, std::uint8_t bytes) {
    std::optional<std::uint64_t>& to = registers_[instruction.reg()];
    if (instruction.mode() == 3) {
      const std::optional<std::uint64_t> from = registers_[instruction.rm()];
      if (from && bytes >= 4) to = bytes == 4 ? *from & 0xffff'ffff : *from;
      return from && bytes >= 4;
    }
    const std::optional<Address> address = address_of(instruction);
    std::uint64_t value = 0;
    if (!address || !memory_.read(*address, std::as_writable_bytes(std::span(&value, 1)).first(bytes))) return false;
    loads_.push_back({*address, bytes, value});
    to = value;
    return true;
  }

  // Intel SDM vol. 2, 2.1.5, 2.2.1.6.
  std::optional<Address> address_of(const Instruction& instruction) const {
    const unsigned mode = instruction.mode(), low = instruction.modrm & 7;
    const auto displacement = static_cast<Address>(instruction.displacement);
    if (mode == 3) return std::nullopt;
    if (mode == 0 && low == 5) return function_ + at_ + displacement;
    if (low != 4) {
      const std::optional<Address> base = registers_[instruction.rm()];
      return base ? std::optional(*base + displacement) : std::nullopt;
    }
    const unsigned index = (instruction.sib >> 3 & 7) | (instruction.rex & 2) << 2,
                   base = (instruction.sib & 7) | (instruction.rex & 1) << 3;
    Address sum = displacement;
    if (mode != 0 || (base & 7) != 5) {
      if (!registers_[base]) return std::nullopt;
      sum += *registers_[base];
    }
    if (index != 4) {
      if (!registers_[index]) return std::nullopt;
      sum += *registers_[index] << (instruction.sib >> 6);
    }
    return sum;
  }

  std::span<const std::byte> code_;
  Address function_;
  const Memory& memory_;
  std::size_t at_ = 0;
  std::array<std::optional<std::uint64_t>, 16> registers_{};
  std::optional<bool> is_zero_;
  std::vector<Load> loads_;
};

}  // namespace

std::vector<Load> loads_of(std::span<const std::byte> code, Address function, Address argument, const Memory& memory) {
  Execution execution(code, function, argument, memory);
  return execution.run() ? std::move(execution.loads()) : std::vector<Load>();
}

}  // namespace luaspy::x86_64
