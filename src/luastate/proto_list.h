#pragma once
// A few Protos, each once: those that a stop meets first.

#include <algorithm>
#include <array>
#include <span>

#include "base/memory.h"

namespace luaspy {

class ProtoList {
 public:
  void add(Address proto) {
    if (count_ < protos_.size() && std::ranges::find(all(), proto) == all().end()) protos_[count_++] = proto;
  }
  std::span<const Address> all() const { return std::span(protos_).first(count_); }

 private:
  std::array<Address, 64> protos_;
  std::size_t count_ = 0;
};

}  // namespace luaspy
