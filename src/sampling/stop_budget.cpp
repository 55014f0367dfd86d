#include "sampling/stop_budget.h"

#include <algorithm>

namespace luaspy {

void StopBudget::end_tick(std::int64_t now) {
  if (share_ >= 1) {
    threads_.clear();
    return;
  }
  double most = 0, all_paid_at = 0;
  for (auto& [tid, stops] : threads_) {
    most = std::max(most, stops.mean);
    stops.paid_at = std::max(stops.paid_at, static_cast<double>(now)) + static_cast<double>(stops.in_tick) / share_;
    stops.in_tick = 0;
    all_paid_at = std::max(all_paid_at, stops.paid_at);
  }
  // Counted from when the tick was due, not from `now`: ticks come on a grid, and one that had to
  // wait for the next point of the grid must not delay all that follow.
  const double next = static_cast<double>(paid_at_) + most / share_;
  const double sooner = std::max(all_paid_at - most_owed - std::max(next, static_cast<double>(now)), 0.0);
  // What is paid sooner need not be paid again later.
  const double kept = most > 0 ? std::max(1 - 1 / remembered_ - sooner * share_ / (most * remembered_), 0.0) : 0;
  for (auto& [tid, stops] : threads_) stops.mean *= kept;
  std::erase_if(threads_, [&](const auto& thread) {
    return thread.second.mean < 1 && thread.second.paid_at <= static_cast<double>(now);
  });
  remembered_ = std::min(remembered_ + 0.5, most_remembered);
  paid_at_ = std::max(static_cast<std::int64_t>(next), now) + static_cast<std::int64_t>(sooner);
}

}  // namespace luaspy
