#pragma once
// Where a thread was in the kernel: the call chain that the kernel has recorded.

#include <array>
#include <cstddef>
#include <span>

#include "base/registers.h"

namespace luaspy {

// Innermost first: the instruction that was interrupted, then return addresses. Empty: the thread was not in the
// kernel, or that is not known.
class KernelChain {
 public:
  static constexpr std::size_t most = 64;  // the kernel leaves out what is further out

  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  // What does not fit is left out.
  void add(Address address) {
    if (size_ != most) addresses_[size_++] = address;
  }
  std::span<const Address> addresses() const { return {addresses_.data(), size_}; }

 private:
  std::array<Address, most> addresses_;  // not initialised: one is made for each look
  std::size_t size_ = 0;
};

}  // namespace luaspy
