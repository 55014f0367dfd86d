#pragma once
// When to tick: at the rate asked for, with a little jitter so that nothing periodic hides. Ticks whose time has passed are
// counted, not caught up: a slow sampler must not starve the target.

#include <cstdint>
#include <random>

#include "attach/system.h"

namespace luaspy {

class Pacer {
 public:
  explicit Pacer(double rate);  // Hz

  // Sleeps until the next tick. How many were missed.
  std::int64_t wait();

 private:
  system::Clock::duration interval_;
  system::Clock::time_point next_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace luaspy
