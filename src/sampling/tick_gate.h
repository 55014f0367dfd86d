#pragma once
// Which ticks there are: all CPU samplers make the same ones, and none while earlier stops are not paid for. May be
// used by any thread.

#include <atomic>
#include <cstdint>
#include <mutex>

#include "sampling/stop_budget.h"
#include "system/calls.h"

namespace luaspy {

class TickGate {
 public:
  // `share`: of the time that a thread may stand still (StopBudget). Times are counted from `start` on.
  TickGate(double share, system::Clock::time_point start) : budget_(share), start_(start) {}

  // The tick of that number begins. False: it is left out, for all CPU samplers.
  bool begin(std::int64_t number, system::Clock::time_point now) {
    const std::lock_guard lock(lock_);
    if (number <= last_) return !skips_;  // another CPU sampler has begun it
    if (!skips_) budget_.end_tick(last_at_);
    last_ = number;
    const std::int64_t at = system::to_ns(now - start_);
    skips_ = at < budget_.paid_at();
    if (!skips_) last_at_ = at;
    ++(skips_ ? skipped_ : made_);
    return !skips_;
  }
  // A thread was stopped for `ns` in the current tick.
  void add_stop(int tid, std::int64_t ns) {
    const std::lock_guard lock(lock_);
    budget_.add(tid, ns);
  }
  // Ticks so far.
  std::int64_t made() const { return made_; }
  std::int64_t skipped() const { return skipped_; }

 private:
  std::mutex lock_;
  StopBudget budget_;
  const system::Clock::time_point start_;
  std::int64_t last_ = 0, last_at_ = 0;  // its number; when the last one that was made began, ns since start_
  bool skips_ = true;                    // the last one was left out
  std::atomic<std::int64_t> made_ = 0, skipped_ = 0;
};

}  // namespace luaspy
