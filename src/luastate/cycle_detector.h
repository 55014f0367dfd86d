#pragma once
// A list in a target's memory may lead back into itself.

#include <cstdint>

#include "base/memory.h"

namespace luaspy {

// R. P. Brent's test for a circle: an object at a power of two is seen again. Ask it for each
// object of a list, in order.
class CycleDetector {
 public:
  // Was `object` there before? In a circle it says so at the latest after two more rounds.
  bool closes(Address object) {
    if (object == landmark_) return true;
    if (++steps_ == next_landmark_) landmark_ = object, next_landmark_ *= 2;
    return false;
  }

 private:
  Address landmark_ = 0;
  std::uint64_t steps_ = 0, next_landmark_ = 1;
};

}  // namespace luaspy
