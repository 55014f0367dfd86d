#pragma once
// The register set of a thread or a frame, numbered as DWARF numbers them for the architecture
// (System V x86-64 ABI, figure 3.36).

#include <array>

#include "base/memory.h"

namespace luaspy {

enum Register : unsigned {
  rax,
  rdx,
  rcx,
  rbx,
  rsi,
  rdi,
  rbp,
  rsp,
  r8,
  r9,
  r10,
  r11,
  r12,
  r13,
  r14,
  r15,
  rip,
  register_count
};

// The registers that a called function preserves (System V x86-64 ABI, 3.2.1), without rsp.
inline constexpr std::array callee_saved_registers = {rbx, rbp, r12, r13, r14, r15};

class Registers {
 public:
  // Hundreds of frames are created at every tick, so unknown values are not cleared.
  Registers() {}
  bool knows(unsigned number) const { return (known_ >> number & 1) != 0; }
  // 0 if unknown.
  Address operator[](unsigned number) const { return knows(number) ? values_[number] : 0; }
  void set(unsigned number, Address value) { values_[number] = value, known_ |= 1u << number; }
  void forget(unsigned number) { known_ &= ~(1u << number); }
  void forget_all() { known_ = 0; }

  Address pc() const { return (*this)[rip]; }
  Address sp() const { return (*this)[rsp]; }

 private:
  std::array<Address, register_count> values_;
  std::uint32_t known_ = 0;  // one bit per register
};

}  // namespace luaspy
