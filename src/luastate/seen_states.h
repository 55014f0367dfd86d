#pragma once
// The addresses at which a lua_State was seen. One that has been a state may become one again, whatever was there
// meanwhile. A hash table of its own, since it is asked for every word of every stack.

#include <cstdint>
#include <vector>

#include "base/memory.h"

namespace luaspy {

class SeenStates {
 public:
  bool contains(Address word) const { return slots_[slot_of(word)] == word; }
  // It forgets all others when there are too many: a program may make states without end.
  void add(Address word);
  void clear();
  // Changes whenever an address is added or all are forgotten.
  std::uint64_t generation() const { return generation_; }

 private:
  static constexpr std::size_t few = 1 << 8, most = 1 << 14;  // slots: powers of two

  std::size_t slot_of(Address word) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = word * 0x9e3779b97f4a7c15 >> 32 & mask;
    while (slots_[at] != 0 && slots_[at] != word) at = (at + 1) & mask;
    return at;
  }

  std::vector<Address> slots_ = std::vector<Address>(few);  // 0: none
  std::size_t count_ = 0;
  std::uint64_t generation_ = 1;
};

}  // namespace luaspy
