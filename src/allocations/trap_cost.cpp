#include "allocations/trap_cost.h"

#include <algorithm>
#include <vector>

namespace luaspy {
namespace {

double distance_ns(system::Clock::time_point from, system::Clock::time_point to) {
  return std::max(static_cast<double>(system::to_ns(to - from)), 0.0);
}

std::vector<double> distances_ns(std::span<const CallTrap::Call> calls) {
  std::vector<double> distances;
  for (std::size_t i = 1; i < calls.size(); ++i) distances.push_back(distance_ns(calls[i - 1].at, calls[i].at));
  return distances;
}

}  // namespace

// What takes longer says little: it may be the program, and for any time. It is believed slowly, what is
// faster soon.
void TrapCost::Usual::add(double ns) {
  constexpr double faster = 0.2, slower = 0.01;  // weights of the newest
  if (ns_ == 0) ns_ = ns;
  ns_ += (ns < ns_ ? faster : slower) * (std::min(ns, most * ns_) - ns_);
}

// The nearest calls of a burst have almost nothing but the trap between them.
void TrapCost::add(Resumed resumed, std::span<const CallTrap::Call> calls) {
  constexpr std::size_t least = 8;
  if (resumed && !calls.empty()) first_.add(distance_ns(*resumed, calls.front().at));
  std::vector<double> distances = distances_ns(calls);
  if (distances.size() < least) return;
  const auto quarter = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 4);
  std::ranges::nth_element(distances, quarter);
  next_.add(*quarter);
}

std::int64_t TrapCost::of(Resumed resumed, std::span<const CallTrap::Call> calls) const {
  if (calls.empty()) return 0;
  double sum = resumed ? first_.of(distance_ns(*resumed, calls.front().at)) : next_.ns();
  for (const double distance : distances_ns(calls)) sum += next_.of(distance);
  return static_cast<std::int64_t>(sum);
}

std::int64_t TrapCost::going_on() const { return static_cast<std::int64_t>(std::max(first_.ns() - next_.ns(), 0.0)); }

}  // namespace luaspy
