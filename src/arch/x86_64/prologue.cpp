#include "arch/x86_64/prologue.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "arch/x86_64/instruction.h"

namespace luaspy::x86_64 {
namespace {

class Follower {
 public:
  std::optional<FrameShape> run(std::span<const std::byte> code, std::size_t stop) {
    bool reachable = true;
    for (std::size_t at = 0; at < stop;) {
      if (const auto known = at_target_.find(at); known != at_target_.end() && !reachable) shape_ = known->second;
      reachable = true;
      const std::optional<Instruction> instruction = read_instruction(code, at);
      if (!instruction) return std::nullopt;
      at += instruction->length;
      if (!apply(*instruction)) return std::nullopt;
      using Flow = Instruction::Flow;
      const Flow flow = instruction->flow();
      if (flow == Flow::branch || flow == Flow::jump)
        record_target(static_cast<std::int64_t>(at) + instruction->immediate);
      if (flow == Flow::jump || flow == Flow::end) {
        // The next instruction is reached from elsewhere: by a branch that was seen, or else from
        // the function's body.
        reachable = false;
        shape_ = body_;
      }
    }
    if (const auto known = at_target_.find(stop); known != at_target_.end() && !reachable) return known->second;
    return shape_;
  }

 private:
  void record_target(std::int64_t target) {
    if (target > 0) at_target_.emplace(static_cast<std::size_t>(target), shape_);
  }

  void push(unsigned number) {
    shape_.depth += 8;
    if (std::ranges::find(callee_saved_registers, number) == callee_saved_registers.end()) return;
    if (std::ranges::find(shape_.saved, number, &FrameShape::Saved::number) == shape_.saved.end())
      shape_.saved.push_back({number, shape_.depth});
  }

  // False where sp changes in a way that is not followed.
  bool apply(const Instruction& instruction) {
    const unsigned op = instruction.opcode;
    const bool wide = instruction.wide();
    bool entering = true;  // part of a prologue, not of an epilogue
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
      if (kind != 0 && kind != 5) return shape_.frame_pointer.has_value() || kind == 7;  // and rsp, -16
      shape_.depth += kind == 5 ? instruction.immediate : -instruction.immediate;
      entering = (kind == 5) == (instruction.immediate > 0);
    } else if (op == 0x89 && wide && instruction.modrm == 0xe5) {  // mov rbp, rsp
      // Right after push rbp this sets up a frame pointer; elsewhere rbp is an ordinary register.
      if (shape_.depth == 8 && !shape_.saved.empty() && shape_.saved.back().number == rbp) shape_.frame_pointer = 8;
      return true;
    } else if (op == 0xc9) {  // leave
      shape_.depth = 0;
      entering = false;
    } else if (op == 0x8d && wide && instruction.reg() == 4 && instruction.mode() != 3) {  // lea rsp, …
      if ((instruction.modrm & 7) == 5 && shape_.frame_pointer)
        shape_.depth = *shape_.frame_pointer - instruction.displacement;
      else shape_.depth -= instruction.displacement;
      entering = false;
    } else {
      return true;
    }
    shape_.saved.erase(std::remove_if(shape_.saved.begin(), shape_.saved.end(),
                                      [&](const FrameShape::Saved& saved) { return saved.below > shape_.depth; }),
                       shape_.saved.end());
    if (entering && shape_.depth >= body_.depth) body_ = shape_;
    return shape_.depth >= 0;
  }

  FrameShape shape_, body_;  // body_: the deepest shape in the prologue, which holds for most of the function
  std::map<std::size_t, FrameShape> at_target_;
};

}  // namespace

std::optional<FrameShape> shape_of_frame(std::span<const std::byte> code, std::size_t at) {
  return at <= code.size() ? Follower().run(code, at) : std::nullopt;
}

// MOV rax, 15 or MOV eax, 15, then SYSCALL: glibc and musl, and what else restores by SA_RESTORER.
bool returns_from_signal(std::span<const std::byte> code) {
  constexpr std::array<std::uint8_t, 9> wide = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
  constexpr std::array<std::uint8_t, 7> narrow = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
  const auto is = [&](std::span<const std::uint8_t> other) {
    return code.size() >= other.size() && std::ranges::equal(code.first(other.size()), std::as_bytes(other));
  };
  return is(wide) || is(narrow);
}

std::optional<std::int64_t> depth_of_straight_code(std::span<const std::byte> code, std::size_t after_call) {
  constexpr std::size_t most_bytes = 64;
  std::vector<std::size_t> targets;  // of branches
  std::size_t start = 0;             // of the straight code
  bool straight = true;
  using Flow = Instruction::Flow;
  for (std::size_t at = 0; at < code.size();) {
    const std::optional<Instruction> instruction = read_instruction(code, at);
    if (!instruction && at >= after_call) break;  // data
    if (!instruction) return std::nullopt;
    at += instruction->length;
    const unsigned op = instruction->opcode;
    const bool calls = !instruction->two_byte && (op == 0xe8 || (op == 0xff && (instruction->reg() & 7) == 2));
    const Flow flow = instruction->flow();
    if (flow == Flow::branch || flow == Flow::jump)
      targets.push_back(at + static_cast<std::size_t>(instruction->immediate));
    if (at > after_call) continue;  // only what leads back is of interest
    if (flow == Flow::jump || flow == Flow::end) {
      start = at;
      straight = true;
    } else if (flow == Flow::branch || (calls && at != after_call)) {
      straight = false;
    }
  }
  const auto is_in_it = [&](std::size_t target) { return target >= start && target <= after_call; };
  if (!straight || after_call - start > most_bytes || std::ranges::any_of(targets, is_in_it)) return std::nullopt;
  const std::optional<FrameShape> shape = shape_of_frame(code.subspan(start), after_call - start);
  return shape && !shape->frame_pointer ? std::optional(shape->depth) : std::nullopt;
}

bool ends_here(std::span<const std::byte> code) {
  constexpr int most_instructions = 8, exit_call = 60;  // exit(2): asm/unistd_64.h
  std::optional<std::int64_t> eax;
  bool called = false;
  std::size_t at = 0;
  for (int i = 0; i < most_instructions; ++i) {
    const std::optional<Instruction> instruction = read_instruction(code, at);
    if (!instruction) return false;
    at += instruction->length;
    const unsigned op = instruction->opcode;
    if (instruction->two_byte && op == 0x05) return !called && eax == exit_call;  // SYSCALL
    if (!instruction->two_byte && op == 0xf4) return true;                        // HLT
    if (instruction->flow() != Instruction::Flow::on) return false;
    const bool calls = !instruction->two_byte && (op == 0xe8 || (op == 0xff && (instruction->reg() & 7) == 2));
    if (calls && std::exchange(called, true)) return false;
    if (instruction->two_byte) continue;
    const bool eax_is_target = (instruction->rex & 1) == 0;
    if ((op == 0xb8 || op == 0xb0) && eax_is_target)
      eax = instruction->immediate;  // MOV; of the low byte only, after XOR eax, eax
    if (op == 0xc7 && instruction->modrm == 0xc0 && eax_is_target) eax = instruction->immediate;
  }
  return false;
}

}  // namespace luaspy::x86_64
