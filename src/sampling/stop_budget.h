#pragma once
// Bounds the share of time that any thread of the target is stopped, by saying when the next tick
// may be. The cost of stops is averaged over many ticks, so that a stack that takes long to read is
// not sampled less often than others. The average then determines the distance of ticks: a stop of
// any length is paid back in full, within a few times `most_remembered` ticks.

#include <cstdint>
#include <map>

namespace luaspy {

class StopBudget {
 public:
  explicit StopBudget(double share) : share_(share) {}  // above 0; 1: no bound

  // When the stops so far are paid for (ns, of the clock that end_tick() uses): no thread may be
  // stopped before.
  std::int64_t paid_at() const { return paid_at_; }
  // A thread was stopped for `ns` in the current tick.
  void add(int tid, std::int64_t ns) { mean_[tid] += static_cast<double>(ns) / remembered_; }
  // Ends a tick that began at `now`.
  void end_tick(std::int64_t now);

 private:
  static constexpr double most_remembered = 128;

  double share_;
  double remembered_ = 16;  // ticks; few at first, so that the bound holds from the beginning, but more than just the
                            // first one, which is slow
  std::map<int, double> mean_;  // recent average of ns stopped per tick, by tid; without threads that have not been
                                // stopped for a long time
  std::int64_t paid_at_ = 0;
};

}  // namespace luaspy
