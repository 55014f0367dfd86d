#pragma once
// When ticks are: one in each interval, anywhere in it with the same probability, but never too close
// to the next one. So a program that repeats itself as often as ticks come has right shares, too;
// with less jitter, all ticks would fall on one part of what it repeats. The time of a tick depends
// only on its number, so threads on several CPUs have the same ticks without communicating.

#include <algorithm>
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
  // How far a tick is from the next one at least. A look takes some 30 µs on the target's CPU, and a
  // tick that came meanwhile would be late. It leaves 1 % of an interval without ticks at 100 Hz,
  // 10 % at 1 kHz and half of it from 5 kHz on.
  std::chrono::nanoseconds apart() const {
    constexpr std::chrono::nanoseconds enough = std::chrono::microseconds(100);
    return std::min(enough, interval_ / 2);
  }
  // Up to half an interval, less half of apart(), before or after its place.
  Clock::time_point time_of(std::int64_t tick) const {
    const std::int64_t jitter = static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(tick) ^ seed_) >> 40) -
                                (1 << 23);  // of 2^24
    return start_ + interval_ * tick + std::chrono::nanoseconds((interval_ - apart()).count() * jitter >> 24);
  }
  // The first tick that is later than `time`.
  std::int64_t after(Clock::time_point time) const {
    std::int64_t tick = (time - start_) / interval_ - 1;  // its place is an interval before, or more
    while (time_of(tick) <= time) ++tick;
    return tick;
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
