#include "sampling/probe_turns.h"

#include <algorithm>

#include "sampling/process_tree.h"

namespace luaspy {

ProbeTurns::Clock::time_point ProbeTurns::turn_end(Clock::time_point end) {
  if (probes_.size() == 1) return end;
  using Ns = std::chrono::nanoseconds;
  std::uniform_int_distribution<Ns::rep> length(Ns(shortest).count(), Ns(longest).count());
  return std::min(now_() + Ns(length(random_)), end);
}

Result<void> ProbeTurns::run_until(Clock::time_point end) {
  const auto is_over = [&] {
    return now_() >= end || std::ranges::any_of(probes_, [](const Probe* probe) { return probe->ended(); });
  };
  Result<void> ran;
  std::size_t turn = 0;
  for (; ran && !is_over(); ++turn) ran = probes_[turn % probes_.size()]->run_until(turn_end(end));
  const bool first_was_last = turn % probes_.size() == 1 % probes_.size();
  if (ran && !first_was_last) ran = probes_.front()->run_until(now_());
  return ran;
}

Result<void> run_probes(ProcessTree& tree, const std::vector<Probe*>& probes, system::Clock::time_point end) {
  ProbeTurns turns(std::random_device{}());
  for (Probe* const probe : probes) turns.add(*probe);
  tree.before_drop([&](Session& session) { turns.forget(session); });
  Result<void> ran = turns.run_until(end);
  tree.before_drop({});
  return ran;
}

system::Clock::time_point end_of(system::Clock::time_point begin, std::optional<double> duration) {
  if (!duration) return system::Clock::time_point::max();
  return begin + std::chrono::nanoseconds(static_cast<std::int64_t>(*duration * 1e9));
}

}  // namespace luaspy
