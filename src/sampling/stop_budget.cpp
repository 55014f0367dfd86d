#include "sampling/stop_budget.h"

#include <algorithm>

namespace luaspy {

void StopBudget::end_tick(std::int64_t now) {
  if (share_ >= 1) {
    mean_.clear();
    return;
  }
  double most = 0;
  for (auto& [tid, mean] : mean_) {
    most = std::max(most, mean);
    mean *= 1 - 1 / remembered_;
  }
  std::erase_if(mean_, [](const auto& thread) { return thread.second < 1; });
  remembered_ = std::min(remembered_ + 0.5, most_remembered);
  // Counted from when the tick was due, not from `now`: ticks come on a grid, and one that had to
  // wait for the next point of the grid must not delay all that follow.
  paid_at_ = std::max(paid_at_ + static_cast<std::int64_t>(most / share_), now);
}

}  // namespace luaspy
