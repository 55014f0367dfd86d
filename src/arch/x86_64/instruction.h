#pragma once
// One machine instruction: how long it is, and what it does it to. x86-64; Intel SDM vol. 2.

#include <cstddef>
#include <optional>
#include <span>

#include "arch/x86_64/registers.h"

namespace luaspy::x86_64 {

// The registers, as instructions number them (Intel SDM vol. 2, table 2-2).
inline constexpr std::array encoded = {rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15};

struct Instruction {
  std::size_t length = 0;
  bool two_byte = false;  // 0F xx
  unsigned opcode = 0, rex = 0, modrm = 0, sib = 0;
  std::int64_t displacement = 0, immediate = 0;

  bool wide() const { return (rex & 8) != 0; }  // of 64 bits
  unsigned mode() const { return modrm >> 6; }
  unsigned reg() const { return (modrm >> 3 & 7) | (rex & 4) << 1; }
  unsigned rm() const { return (modrm & 7) | (rex & 1) << 3; }

  // Its operand in memory, if that is a register and a displacement: the register, as instructions
  // number it.
  std::optional<unsigned> base() const {
    if (mode() == 3 || (mode() == 0 && (modrm & 7) == 5)) return std::nullopt;
    if ((modrm & 7) != 4) return rm();
    const bool indexed = (sib >> 3 & 7) != 4 || (rex & 2) != 0;
    return indexed || (mode() == 0 && (sib & 7) == 5) ? std::nullopt : std::optional((sib & 7) | (rex & 1) << 3);
  }

  enum class Flow {
    on,
    branch,
    jump,
    end
  };  // `immediate` is relative to the next instruction for a branch (if) and a jump (always)
  Flow flow() const;
  bool is_call() const { return !two_byte && opcode == 0xe8; }  // call rel32
};

// The instruction at offset `at`; nullopt if it is one that is not known (of AVX), has more than 15 bytes, or reaches
// beyond the code.
std::optional<Instruction> read_instruction(std::span<const std::byte> code, std::size_t at);

}  // namespace luaspy::x86_64
