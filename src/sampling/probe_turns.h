#pragma once
// A recording by several probes: each has turns, of random length and as long as the others' on average unless somebody
// else decides that, until the first one has ended.

#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "sampling/probe.h"

namespace luaspy {

class ProcessTree;

struct ProbeTurn {
  ProbeTurn(Probe* its,
            std::function<system::Clock::duration()> its_length = {})  // NOLINT(google-explicit-constructor):
                                                                       // most have no length
      : probe(its), length(std::move(its_length)) {}
  Probe* probe;
  std::function<system::Clock::duration()> length;  // asked at the beginning of each turn; empty: random
};

class ProbeTurns {
 public:
  using Clock = system::Clock;
  static constexpr std::chrono::milliseconds shortest{50}, longest{200};

  // `seed` chooses the lengths. `now`: the time; tests have another one.
  explicit ProbeTurns(std::uint64_t seed, std::function<Clock::time_point()> now = Clock::now)
      : random_(seed), now_(std::move(now)) {}

  // Each probe must live as long as this. The first one's time is the recording's: it has the last turn, so that its
  // counts are of the end.
  void add(ProbeTurn turn) { turns_.push_back(std::move(turn)); }

  // Returns at `end`, when a probe has ended, or with the first Error of one.
  Result<void> run_until(Clock::time_point end);
  // For ProcessTree::before_drop().
  void forget(SampledProcess& process) {
    for (const ProbeTurn& turn : turns_) turn.probe->forget(process);
  }

 private:
  Clock::duration random_length();

  std::mt19937_64 random_;
  const std::function<Clock::time_point()> now_;
  std::vector<ProbeTurn> turns_;
};

// All of a recording of a tree, until `end` at the latest.
Result<void> run_probes(ProcessTree& tree, const std::vector<ProbeTurn>& turns, system::Clock::time_point end);

// So long after `begin`; without a duration never.
system::Clock::time_point end_of(system::Clock::time_point begin, std::optional<double> duration);

}  // namespace luaspy
