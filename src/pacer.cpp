#include "pacer.h"

namespace luaspy {

using system::Clock;

Pacer::Pacer(double rate) : interval_(std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 / rate))), next_(Clock::now()) {}

std::int64_t Pacer::wait() {
  next_ += interval_;
  std::int64_t missed = 0;
  const Clock::time_point now = Clock::now();
  if (now > next_ + interval_) {
    missed = (now - next_) / interval_;
    next_ += missed * interval_;
  }
  std::uniform_real_distribution<double> spread(-0.25, 0.25);
  system::sleep_until(next_ + Clock::duration(static_cast<std::int64_t>(spread(random_) * static_cast<double>(interval_.count()))));
  return missed;
}

}  // namespace luaspy
