#pragma once
// Bounds the share of time that any thread of the target is stopped, by saying when the next tick
// may be. The cost of stops is averaged over many ticks, so that a stack that takes long to read is
// not sampled less often than others. The average then determines the distance of ticks: a stop of
// any length is paid back in full, within a few times `most_remembered` ticks. But no more than
// `most_owed` is owed: without that, stops of tens of ms, paid back over minutes, would exceed the
// bound in any shorter time.

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
  void add(int tid, std::int64_t ns) {
    Stops& stops = threads_[tid];
    stops.mean += static_cast<double>(ns) / remembered_;
    stops.in_tick += ns;
  }
  // Ends a tick that began at `now`.
  void end_tick(std::int64_t now);

 private:
  static constexpr double most_remembered = 128;
  static constexpr double most_owed = 5e8;  // ns without stops

  double share_;
  double remembered_ = 16;  // ticks; few at first, so that the bound holds from the beginning, but more than just the
                            // first one, which is slow
  struct Stops {
    double mean = 0;           // recent average of ns stopped per tick
    std::int64_t in_tick = 0;  // ns stopped in the current tick
    double paid_at = 0;        // when all of its stops so far are paid for; as the time of end_tick()
  };
  std::map<int, Stops> threads_;  // by tid, without those that have not been stopped for a long time;
                                  // a thread that gets the number of an ended one owes what that one owed
  std::int64_t paid_at_ = 0;
};

}  // namespace luaspy
