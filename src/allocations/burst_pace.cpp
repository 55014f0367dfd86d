#include "allocations/burst_pace.h"

#include <algorithm>
#include <cmath>

#include "attach/call_trap.h"

namespace luaspy {

void BurstPace::add(std::int64_t trapped, std::int64_t growing, std::int64_t took_ns, const Loops& loops) {
  constexpr double weight = 0.1;  // of the newest
  ++bursts_;
  trapped_ += trapped;
  spent_ns_ += took_ns;
  a_burst_ns_ += weight * (static_cast<double>(took_ns) - a_burst_ns_);
  if (growing == 0) return;
  // A burst has to be some times longer than a loop of the program. The loop that is seen may be a part
  // of another one, which is longer than the burst; so it is never shorter than most loops would need. Where a pause
  // between two rounds shows that one, bursts as long as it suffice.
  constexpr double rounds = 4, least_calls = 16, usual = 100, least_bursts_a_second = 10;
  const double a_call_ns = static_cast<double>(took_ns) / static_cast<double>(growing);
  const double affordable = most_cost_ * 1e9 / least_bursts_a_second / std::max(a_call_ns, 1.0);
  const double most = std::clamp<double>(affordable, least_calls, static_cast<double>(CallTrap::most_calls) / 2);
  const double wanted = std::max({usual, rounds * static_cast<double>(loops.period), loops.between_pauses});
  calls_ += weight * (std::clamp(wanted, least_calls, most) - calls_);
}

// A burst often begins at the same call of a loop, the first one after a pause. The sum of two random
// numbers spreads the last calls over the loop evenly, as soon as the loop is shorter than the middle;
// one random number would have some calls of the loop twice as often as others.
std::int64_t BurstPace::draw(double spread) {
  const auto each = [&] { return std::uniform_real_distribution<double>(calls_ / 8, calls_ * 7 / 8)(random_); };
  const double more = std::uniform_real_distribution<double>(0,
                                                             std::max(std::min(spread, most_spread()), 1.0))(random_);
  return std::clamp<std::int64_t>(std::llround(each() + each() + (spread > 0 ? more : 0)), 1, CallTrap::most_calls);
}

double BurstPace::bursts_a_second(std::int64_t passed_ns) const {
  constexpr double most = 200, soon_ns = 5e8;
  const double left_ns = most_cost_ * (static_cast<double>(passed_ns) + soon_ns) - static_cast<double>(spent_ns_);
  return std::clamp(left_ns / soon_ns * 1e9 / std::max(a_burst_ns_, 1.0), 0.5, most);
}

}  // namespace luaspy
