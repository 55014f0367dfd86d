#pragma once
// Looks that fail cost the target as much as others. After a few in a row at one thread, the next ones come
// at ever longer distances, until one succeeds: it executes code that luaspy cannot read, it changes too fast,
// or luaspy may not look at it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/sample.h"

namespace luaspy {

class BackOff {
 public:
  // Whether the thread is to be looked at in this tick. By one thread at a time.
  bool is_due(std::int64_t tick, std::chrono::nanoseconds interval) {
    const int failed = failed_;
    if (failed >= few && tick - looked_ < distance(failed, interval)) return false;
    looked_ = tick;
    return true;
  }
  // What became of a look; by any thread. That a thread has ended, or has slept meanwhile, is no failure.
  void record(Loss loss) {
    if (loss == Loss::none) {
      failed_ = 0;
    } else if (loss != Loss::ended && loss != Loss::moved) {
      last_ = loss;
      ++failed_;
    }
  }
  // Why the last look failed: also the reason that there is none now.
  Loss reason() const { return last_; }

 private:
  static constexpr int few = 8, longest = 8;  // longest: the distance in ticks, as a power of two
  // In ticks; but no thread is left alone for more than a second.
  static std::int64_t distance(int failed, std::chrono::nanoseconds interval) {
    const std::int64_t second = std::max<std::int64_t>(std::chrono::nanoseconds(std::chrono::seconds(1)) / interval, 1);
    return std::min(std::int64_t{1} << std::min(failed - few + 1, longest), second);
  }

  std::atomic<int> failed_ = 0;  // in a row
  std::atomic<Loss> last_ = Loss::none;
  std::int64_t looked_ = -1;  // the tick of the last look
};

}  // namespace luaspy
