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

// How many rounds of chance: a quarter under a sanitizer, where each takes several times as long. tests/fuzz/ has all
// the others.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LUASPY_TESTS_SANITIZED 1
#endif
#endif
#ifdef LUASPY_TESTS_SANITIZED
constexpr int rounds(int many) { return many / 4; }
#else
constexpr int rounds(int many) { return many; }
#endif

}  // namespace luaspy
