#pragma once
// Keeps what luaspy takes of the host's CPUs below a bound, by sampling less often.

#include <algorithm>

namespace luaspy {

class RateBudget {
 public:
  // `wanted`: Hz. `most_cpu`: the share of one CPU, 0 to 1.
  RateBudget(double wanted, double most_cpu) : wanted_(wanted), most_cpu_(most_cpu), rate_(wanted) {}

  double rate() const { return rate_; }
  // luaspy has used that share of one CPU at rate(). At least one look a second stays. A rate that was lowered rises by
  // a quarter at a time, while that leaves some room.
  void add(double used) {
    constexpr double least_rate = 1, at_once = 0.25, room = 0.7;
    if (used > most_cpu_) rate_ = std::max(rate_ * std::max(most_cpu_ / used, at_once), std::min(least_rate, wanted_));
    else if (used < room * most_cpu_) rate_ = std::min(rate_ * (1 + at_once), wanted_);
  }

 private:
  double wanted_, most_cpu_, rate_;
};

}  // namespace luaspy
