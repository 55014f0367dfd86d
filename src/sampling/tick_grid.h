#pragma once
// When ticks are: at the requested rate, with a little jitter so that nothing periodic stays
// hidden. The time of a tick depends only on its number, so threads on several CPUs have the same
// ticks without communicating.

#include <chrono>
#include <cstdint>

namespace luaspy {

class TickGrid {
 public:
  using Clock = std::chrono::steady_clock;

  // `rate` in Hz. Tick 0 is at `start`. `seed` chooses the jitter.
  TickGrid(double rate, Clock::time_point start, std::uint64_t seed)
      : interval_(static_cast<std::int64_t>(1e9 / rate)), start_(start), seed_(seed) {}

  std::chrono::nanoseconds interval() const { return interval_; }
  // With a jitter of up to a quarter of an interval.
  Clock::time_point time_of(std::int64_t tick) const {
    const std::int64_t jitter = static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(tick) ^ seed_) >> 40) -
                                (1 << 23);  // of 2^24
    return start_ + interval_ * tick + std::chrono::nanoseconds(interval_.count() * jitter >> 25);
  }
  // The first tick that is later than `time`, whatever its jitter.
  std::int64_t after(Clock::time_point time) const {
    constexpr std::chrono::nanoseconds rounded(1);  // the quarter for the jitter was rounded down, and so is this
                                                    // division
    return (time - start_ + interval_ / 4 + rounded) / interval_ + 1;
  }

 private:
  // Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014 (its
  // mix64variant13).
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }

  std::chrono::nanoseconds interval_;
  Clock::time_point start_;
  std::uint64_t seed_;
};

}  // namespace luaspy
