#pragma once
// The registers of x86-64, by their numbers in Registers.

#include "base/registers.h"

namespace luaspy::x86_64 {

enum Register : unsigned {
  rip = Registers::pc_number,
  rsp = Registers::sp_number,
  rax,
  rdx,
  rcx,
  rbx,
  rsi,
  rdi,
  rbp,
  r8,
  r9,
  r10,
  r11,
  r12,
  r13,
  r14,
  r15,
  register_count
};

// The registers that a called function preserves (System V x86-64 ABI, 3.2.1), without rsp.
inline constexpr std::array<std::uint8_t, 6> callee_saved_registers = {rbx, rbp, r12, r13, r14, r15};

}  // namespace luaspy::x86_64
