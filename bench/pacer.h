#pragma once
// When to tick: at the given rate, with a little jitter so that nothing periodic is hidden. Ticks
// whose time has passed are counted, not made up for: a slow sampler must not starve the target.

#include <cstdint>
#include <optional>
#include <random>

#include "system/calls.h"

namespace luaspy {

class Pacer {
 public:
  explicit Pacer(double rate);  // Hz

  // Ticks that were missed before the current one: those whose time had passed, and those left out
  // because of pause_until().
  struct Missed {
    std::int64_t late = 0, skipped = 0;
  };
  // Sleeps until the next tick; nullopt if a signal came first: then the tick is still to come.
  std::optional<Missed> wait();
  // No tick before this time.
  void pause_until(system::Clock::time_point time) { pause_end_ = time; }

 private:
  void choose();

  system::Clock::duration interval_;
  system::Clock::time_point next_;    // on the grid of the rate
  system::Clock::time_point chosen_;  // with jitter
  system::Clock::time_point pause_end_;
  Missed missed_;
  bool waiting_ = false;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace luaspy
