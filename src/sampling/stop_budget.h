#pragma once
// A bound on the share of time that any thread of the target stands still: it says when the next
// tick may be. What stops cost is averaged over many ticks, so that a stack that takes long to read
// is not met less often than others, and then spaces the ticks: a stop of any length is paid back
// in full, within some times `most_remembered` ticks.

#include <cstdint>
#include <map>

namespace luaspy {

class StopBudget {
 public:
  explicit StopBudget(double share) : share_(share) {}  // above 0, to 1: no bound

  // When the stops up to now are paid for (ns, of the clock that end_tick() is told): no thread may
  // be stopped before.
  std::int64_t paid_at() const { return paid_at_; }
  // In the tick under way, a thread stood still for so long.
  void add(int tid, std::int64_t ns) { mean_[tid] += static_cast<double>(ns) / remembered_; }
  // Ends a tick that began at `now`.
  void end_tick(std::int64_t now);

 private:
  static constexpr double most_remembered = 128;

  double share_;
  double remembered_ = 16;  // ticks; few at first, so that the bound holds from the beginning, but not just the first
                            // one, which is slow
  std::map<int, double> mean_;  // ns a tick that a thread stood still lately, by tid; threads that were not stopped for
                                // long are not here
  std::int64_t paid_at_ = 0;
};

}  // namespace luaspy
