#include "arch/x86_64/instruction.h"

#include <algorithm>

namespace luaspy::x86_64 {
namespace {

// Bytes; the processor refuses a longer one (Intel SDM vol. 2, 2.3.11). Without this bound, code that consists of
// prefixes would be read to its end from each of its bytes.
constexpr std::size_t longest_instruction = 15;

class Decoder {
 public:
  Decoder(std::span<const std::byte> code, std::size_t at) : code_(code), start_(at), at_(at) {}

  // Intel SDM vol. 2, appendix A: the part of the opcode maps that compilers use. VEX and EVEX
  // instructions are not decoded.
  std::optional<Instruction> read() {
    bool wide_operand = true;
    while (peek() == 0x66 || peek() == 0xf2 || peek() == 0xf3 || peek() == 0x3e || peek() == 0x2e || peek() == 0x64) {
      if (peek() == 0x66) wide_operand = false;
      next();
    }
    Instruction result;
    if ((peek() & 0xf0) == 0x40) result.rex = next();
    result.opcode = next();
    if (result.opcode == 0xc5 || result.opcode == 0xc4 || result.opcode == 0x62) return std::nullopt;
    if (result.opcode == 0x0f) {
      result.two_byte = true;
      result.opcode = next();
      if (result.opcode == 0x38 || result.opcode == 0x3a) {
        const bool with_immediate = result.opcode == 0x3a;
        next();
        read_modrm(result);
        if (with_immediate) read_signed(1);
        return finish(result);
      }
    }
    if (has_modrm(result)) read_modrm(result);
    result.immediate = read_signed(immediate_size(result, wide_operand));
    return finish(result);
  }

 private:
  unsigned peek() const { return at_ < code_.size() ? std::to_integer<unsigned>(code_[at_]) : 0; }
  unsigned next() { return at_ < code_.size() ? std::to_integer<unsigned>(code_[at_++]) : (++at_, 0); }

  std::int64_t read_signed(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{next()} << 8 * i;
    if (bytes == 0 || bytes == 8) return static_cast<std::int64_t>(value);
    const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes);
    return static_cast<std::int64_t>(value << unused) >> unused;
  }

  void read_modrm(Instruction& result) {
    result.modrm = next();
    const unsigned mode = result.mode(), rm = result.modrm & 7;
    unsigned base = rm;
    if (mode != 3 && rm == 4) base = (result.sib = next()) & 7;
    if (mode == 1) result.displacement = read_signed(1);
    else if (mode == 2 || (mode == 0 && base == 5)) result.displacement = read_signed(4);
  }

  static bool has_modrm(const Instruction& instruction) {
    const unsigned op = instruction.opcode;
    if (instruction.two_byte)
      return !((op >= 0x80 && op < 0x90) || op == 0x05 || op == 0x0b || op == 0xa2 || op == 0x31 || op == 0x77 ||
               (op >= 0xc8 && op < 0xd0));
    if (op < 0x40) return (op & 7) < 4;
    return op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op < 0x90) || op == 0xc0 || op == 0xc1 ||
           op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op < 0xd4) || (op >= 0xd8 && op < 0xe0) || op == 0xf6 ||
           op == 0xf7 || op == 0xfe || op == 0xff;
  }

  static std::size_t immediate_size(const Instruction& instruction, bool wide_operand) {
    const unsigned op = instruction.opcode;
    const std::size_t full = wide_operand ? 4 : 2;
    if (instruction.two_byte) {
      if (op >= 0x80 && op < 0x90) return 4;
      const bool byte = (op >= 0x70 && op < 0x74) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
                        op == 0xc4 || op == 0xc5 || op == 0xc6;
      return byte ? 1 : 0;
    }
    if (op < 0x40) return (op & 7) == 4 ? 1 : (op & 7) == 5 ? full : 0;
    if (op >= 0xb8 && op < 0xc0) return (instruction.rex & 8) != 0 ? 8 : full;
    if (op == 0xe8 || op == 0xe9) return 4;
    if (op == 0x68 || op == 0x69 || op == 0x81 || op == 0xa9 || op == 0xc7) return full;
    if (op == 0xf7) return (instruction.modrm >> 3 & 7) < 2 ? full : 0;
    if (op == 0xf6) return (instruction.modrm >> 3 & 7) < 2 ? 1 : 0;
    if (op == 0xc2) return 2;
    const bool byte = op == 0x6a || op == 0x6b || (op >= 0x70 && op < 0x81) || op == 0x83 || op == 0xa8 ||
                      (op >= 0xb0 && op < 0xb8) || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xeb || op == 0xcd;
    return byte ? 1 : 0;
  }

  std::optional<Instruction> finish(Instruction& result) const {
    if (at_ > code_.size()) return std::nullopt;
    result.length = at_ - start_;
    return result;
  }

  std::span<const std::byte> code_;
  std::size_t start_, at_;
};

}  // namespace

Instruction::Flow Instruction::flow() const {
  if (two_byte) return opcode >= 0x80 && opcode < 0x90 ? Flow::branch : opcode == 0x0b ? Flow::end : Flow::on;
  if (opcode >= 0x70 && opcode < 0x80) return Flow::branch;
  if (opcode == 0xe9 || opcode == 0xeb) return Flow::jump;
  if (opcode == 0xc3 || opcode == 0xc2 || opcode == 0xf4) return Flow::end;
  return opcode == 0xff && (reg() & 7) == 4 ? Flow::end : Flow::on;
}

std::optional<Instruction> read_instruction(std::span<const std::byte> code, std::size_t at) {
  return Decoder(code.first(std::min(code.size(), at + longest_instruction)), at).read();
}

}  // namespace luaspy::x86_64
