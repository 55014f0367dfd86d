#pragma once
// The registers of a thread or a frame. They have numbers of luaspy's own: pc and sp have the same
// ones on every processor, and the others are the processor's (arch/machine.h).

#include <array>

#include "base/memory.h"

namespace luaspy {

class Registers {
 public:
  static constexpr unsigned pc_number = 0, sp_number = 1;
  // How many numbers there can be: AArch64 has pc, sp, and x0 to x30.
  static constexpr unsigned most = 33;

  // Hundreds of frames are created at every tick, so unknown values are not cleared.
  Registers() {}
  bool knows(unsigned number) const { return (known_ >> number & 1) != 0; }
  // 0 if unknown.
  Address operator[](unsigned number) const { return knows(number) ? values_[number] : 0; }
  void set(unsigned number, Address value) { values_[number] = value, known_ |= std::uint64_t{1} << number; }
  void forget(unsigned number) { known_ &= ~(std::uint64_t{1} << number); }
  void forget_all() { known_ = 0; }

  Address pc() const { return (*this)[pc_number]; }
  Address sp() const { return (*this)[sp_number]; }
  void set_pc(Address value) { set(pc_number, value); }
  void set_sp(Address value) { set(sp_number, value); }

 private:
  std::uint64_t known_ = 0;  // one bit per register
  std::array<Address, most> values_;
};

}  // namespace luaspy
