#include "pacer.h"

namespace luaspy {

using system::Clock;

Pacer::Pacer(double rate)
    : interval_(std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 / rate))), next_(Clock::now()) {}

void Pacer::choose() {
  next_ += interval_;
  missed_ = {};
  if (pause_end_ > next_) {
    missed_.skipped = (pause_end_ - next_) / interval_ + 1;
    next_ += missed_.skipped * interval_;
  }
  const Clock::time_point now = Clock::now();
  if (now > next_ + interval_) {
    missed_.late = (now - next_) / interval_;
    next_ += missed_.late * interval_;
  }
  std::uniform_real_distribution<double> spread(-0.25, 0.25);
  chosen_ = next_ +
            Clock::duration(static_cast<std::int64_t>(spread(random_) * static_cast<double>(interval_.count())));
}

std::optional<Pacer::Missed> Pacer::wait() {
  if (!waiting_) choose();
  waiting_ = !system::sleep_until(chosen_);
  if (waiting_) return std::nullopt;
  return missed_;
}

}  // namespace luaspy
