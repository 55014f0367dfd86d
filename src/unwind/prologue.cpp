#include "unwind/prologue.h"

#include <algorithm>
#include <map>

namespace luaspy {
namespace {

// Register numbers of instructions, as DWARF numbers them (Intel SDM vol. 2, table 2-2; System V ABI figure 3.36).
constexpr std::array encoded = {rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15};

struct Instruction {
  std::size_t length = 0;
  bool two_byte = false;      // 0F xx
  unsigned opcode = 0, rex = 0, modrm = 0;
  std::int64_t displacement = 0, immediate = 0;

  unsigned mode() const { return modrm >> 6; }
  unsigned reg() const { return (modrm >> 3 & 7) | (rex & 4) << 1; }
  unsigned rm() const { return (modrm & 7) | (rex & 1) << 3; }
};

class Decoder {
 public:
  Decoder(std::span<const std::byte> code, std::size_t at) : code_(code), start_(at), at_(at) {}

  // Intel SDM vol. 2, appendix A: the opcode maps, as far as compilers use them. VEX and EVEX code is not followed.
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
        if (with_immediate) take(1);
        return finish(result);
      }
    }
    if (has_modrm(result)) read_modrm(result);
    result.immediate = take(immediate_size(result, wide_operand));
    return finish(result);
  }

 private:
  unsigned peek() const { return at_ < code_.size() ? std::to_integer<unsigned>(code_[at_]) : 0; }
  unsigned next() { return at_ < code_.size() ? std::to_integer<unsigned>(code_[at_++]) : (++at_, 0); }

  std::int64_t take(std::size_t bytes) {
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
    if (mode != 3 && rm == 4) base = next() & 7;
    if (mode == 1) result.displacement = take(1);
    else if (mode == 2 || (mode == 0 && base == 5)) result.displacement = take(4);
  }

  static bool has_modrm(const Instruction& instruction) {
    const unsigned op = instruction.opcode;
    if (instruction.two_byte) return !((op >= 0x80 && op < 0x90) || op == 0x05 || op == 0x0b || op == 0xa2 || op == 0x31 || op == 0x77 || (op >= 0xc8 && op < 0xd0));
    if (op < 0x40) return (op & 7) < 4;
    return op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op < 0x90) || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 ||
           (op >= 0xd0 && op < 0xd4) || (op >= 0xd8 && op < 0xe0) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
  }

  static std::size_t immediate_size(const Instruction& instruction, bool wide_operand) {
    const unsigned op = instruction.opcode;
    const std::size_t full = wide_operand ? 4 : 2;
    if (instruction.two_byte) {
      if (op >= 0x80 && op < 0x90) return 4;
      const bool byte = (op >= 0x70 && op < 0x74) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 || op == 0xc4 || op == 0xc5 || op == 0xc6;
      return byte ? 1 : 0;
    }
    if (op < 0x40) return (op & 7) == 4 ? 1 : (op & 7) == 5 ? full : 0;
    if (op >= 0xb8 && op < 0xc0) return (instruction.rex & 8) != 0 ? 8 : full;
    if (op == 0xe8 || op == 0xe9) return 4;
    if (op == 0x68 || op == 0x69 || op == 0x81 || op == 0xa9 || op == 0xc7) return full;
    if (op == 0xf7) return (instruction.modrm >> 3 & 7) < 2 ? full : 0;
    if (op == 0xf6) return (instruction.modrm >> 3 & 7) < 2 ? 1 : 0;
    if (op == 0xc2) return 2;
    const bool byte = op == 0x6a || op == 0x6b || (op >= 0x70 && op < 0x81) || op == 0x83 || op == 0xa8 || (op >= 0xb0 && op < 0xb8) || op == 0xc0 ||
                      op == 0xc1 || op == 0xc6 || op == 0xeb || op == 0xcd;
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

enum class Flow { on, branch, jump, end };

class Follower {
 public:
  std::optional<FrameShape> run(std::span<const std::byte> code, std::size_t stop) {
    bool reachable = true;
    for (std::size_t at = 0; at < stop;) {
      if (const auto known = at_target_.find(at); known != at_target_.end() && !reachable) shape_ = known->second;
      reachable = true;
      const std::optional<Instruction> instruction = Decoder(code, at).read();
      if (!instruction) return std::nullopt;
      at += instruction->length;
      if (!apply(*instruction)) return std::nullopt;
      const Flow flow = flow_of(*instruction);
      if (flow == Flow::branch || flow == Flow::jump) note_target(static_cast<std::int64_t>(at) + instruction->immediate);
      if (flow == Flow::jump || flow == Flow::end) {
        // What follows is reached from elsewhere: along a branch that was seen, or else from the function's body.
        reachable = false;
        shape_ = body_;
      }
    }
    if (const auto known = at_target_.find(stop); known != at_target_.end() && !reachable) return known->second;
    return shape_;
  }

 private:
  static Flow flow_of(const Instruction& instruction) {
    const unsigned op = instruction.opcode;
    if (instruction.two_byte) return op >= 0x80 && op < 0x90 ? Flow::branch : op == 0x0b ? Flow::end : Flow::on;
    if (op >= 0x70 && op < 0x80) return Flow::branch;
    if (op == 0xe9 || op == 0xeb) return Flow::jump;
    if (op == 0xc3 || op == 0xc2 || op == 0xf4) return Flow::end;
    return op == 0xff && (instruction.reg() & 7) == 4 ? Flow::end : Flow::on;
  }

  void note_target(std::int64_t target) {
    if (target > 0) at_target_.emplace(static_cast<std::size_t>(target), shape_);
  }

  void push(unsigned number) {
    shape_.depth += 8;
    if (std::ranges::find(callee_saved_registers, number) == callee_saved_registers.end()) return;
    if (std::ranges::find(shape_.saved, number, &FrameShape::Saved::number) == shape_.saved.end()) shape_.saved.push_back({number, shape_.depth});
  }

  // False where sp changes in a way that is not followed.
  bool apply(const Instruction& instruction) {
    const unsigned op = instruction.opcode;
    const bool wide = (instruction.rex & 8) != 0;
    bool entering = true;   // part of a prologue, not of an epilogue
    if (instruction.two_byte) return true;
    if (op >= 0x50 && op < 0x58) {
      push(encoded[(op & 7) | (instruction.rex & 1) << 3]);
    } else if (op == 0x68 || op == 0x6a) {
      shape_.depth += 8;
    } else if (op >= 0x58 && op < 0x60) {
      shape_.depth -= 8;
      entering = false;
    } else if ((op == 0x81 || op == 0x83) && wide && instruction.mode() == 3 && instruction.rm() == 4) {
      const unsigned kind = instruction.reg() & 7;
      if (kind != 0 && kind != 5) return shape_.frame_pointer.has_value() || kind == 7;   // and rsp, -16
      shape_.depth += kind == 5 ? instruction.immediate : -instruction.immediate;
      entering = (kind == 5) == (instruction.immediate > 0);
    } else if (op == 0x89 && wide && instruction.modrm == 0xe5) {                          // mov rbp, rsp
      // Right after push rbp it makes a frame pointer; elsewhere rbp is a register like others.
      if (shape_.depth == 8 && !shape_.saved.empty() && shape_.saved.back().number == rbp) shape_.frame_pointer = 8;
      return true;
    } else if (op == 0xc9) {                                                               // leave
      shape_.depth = 0;
      entering = false;
    } else if (op == 0x8d && wide && instruction.reg() == 4 && instruction.mode() != 3) {  // lea rsp, …
      if ((instruction.modrm & 7) == 5 && shape_.frame_pointer) shape_.depth = *shape_.frame_pointer - instruction.displacement;
      else shape_.depth -= instruction.displacement;
      entering = false;
    } else {
      return true;
    }
    shape_.saved.erase(std::remove_if(shape_.saved.begin(), shape_.saved.end(), [&](const FrameShape::Saved& saved) { return saved.below > shape_.depth; }),
                       shape_.saved.end());
    if (entering && shape_.depth >= body_.depth) body_ = shape_;
    return shape_.depth >= 0;
  }

  FrameShape shape_, body_;   // body_: the deepest that the prologue made, which most of a function has
  std::map<std::size_t, FrameShape> at_target_;
};

}  // namespace

std::optional<FrameShape> shape_of_frame(std::span<const std::byte> code, std::size_t at) { return at <= code.size() ? Follower().run(code, at) : std::nullopt; }

}  // namespace luaspy
