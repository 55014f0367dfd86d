#pragma once
// Why a recording has no samples, from what was counted: never a guess.

#include <cstdint>
#include <string>

#include "base/sample.h"

namespace luaspy {

// The looks at threads of a target, one for each tick of each thread.
struct EmptyFacts {
  double seconds = 0;        // that it was recorded
  std::int64_t asleep = 0;   // looks that found a thread asleep
  std::int64_t waiting = 0;  // that found one waiting for a CPU
  LossCounts losses{};       // that gave nothing
  std::int64_t cpu_ns = 0;   // used by its threads meanwhile, as the kernel counts it
};

// A sentence, without its first words and without a full stop: "its threads slept at all 300 looks". That a
// thread slept is said only if it was seen asleep.
std::string why_empty(const EmptyFacts& facts);

}  // namespace luaspy
