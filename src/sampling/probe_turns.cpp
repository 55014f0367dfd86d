#include "sampling/probe_turns.h"

#include <algorithm>

#include "sampling/process_tree.h"

namespace luaspy {

ProbeTurns::Clock::duration ProbeTurns::random_length() {
  using Ns = std::chrono::nanoseconds;
  return Ns(std::uniform_int_distribution<Ns::rep>(Ns(shortest).count(), Ns(longest).count())(random_));
}

Result<void> ProbeTurns::run_until(Clock::time_point end) {
  const auto is_over = [&] {
    return now_() >= end || std::ranges::any_of(turns_, [](const ProbeTurn& turn) { return turn.probe->ended(); });
  };
  const auto run = [&](const ProbeTurn& turn) {
    if (turns_.size() == 1) return turn.probe->run_until(end);
    return turn.probe->run_until(std::min(now_() + (turn.length ? turn.length() : random_length()), end));
  };
  Result<void> ran;
  std::size_t number = 0;
  for (; ran && !is_over(); ++number) ran = run(turns_[number % turns_.size()]);
  const bool first_was_last = number % turns_.size() == 1 % turns_.size();
  if (ran && !first_was_last) ran = turns_.front().probe->run_until(now_());
  return ran;
}

Result<void> run_probes(ProcessTree& tree, const std::vector<ProbeTurn>& turns, system::Clock::time_point end) {
  ProbeTurns all(std::random_device{}());
  for (const ProbeTurn& turn : turns) all.add(turn);
  tree.before_drop([&](Session& session) { all.forget(session); });
  Result<void> ran = all.run_until(end);
  tree.before_drop({});
  return ran;
}

system::Clock::time_point end_of(system::Clock::time_point begin, std::optional<double> duration) {
  if (!duration) return system::Clock::time_point::max();
  return begin + std::chrono::nanoseconds(static_cast<std::int64_t>(*duration * 1e9));
}

}  // namespace luaspy
