#pragma once

#include <cstdint>

namespace luaspy {

// Gives the same numbers in each run (a linear congruential generator; Knuth's MMIX).
class Dice {
 public:
  unsigned operator()(unsigned sides) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<unsigned>(state_ >> 33) % sides;
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace luaspy
