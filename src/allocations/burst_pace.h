#pragma once
// How many calls a burst traps, and how often bursts come: as many as the cost allows, and not more.

#include <cstdint>
#include <random>

#include "system/calls.h"

namespace luaspy {

// What is known of the program's loops, in calls; 0: nothing.
struct Loops {
  std::size_t period = 0;     // period_of() the burst
  double between_pauses = 0;  // CallKinds::calls_between_pauses()
};

class BurstPace {
 public:
  // `most_cost`: the share of the time that bursts may take from the program, 0 to 1.
  BurstPace(double most_cost, std::uint64_t seed) : most_cost_(most_cost), random_(seed) {}

  // A burst has trapped so many calls, of which so many grow, and has taken so long.
  void add(std::int64_t trapped, std::int64_t growing, std::int64_t took_ns, const Loops& loops);
  // How many growing calls the next burst has: from a quarter to seven quarters of calls(), most often
  // near it. `spread`: and up to so many more, if the cost allows it.
  std::int64_t draw(double spread = 0);
  // On average.
  double calls() const { return calls_; }
  // How many bursts a second the cost allows, after so much time. What was spent too much is saved
  // again within half a second or so.
  double bursts_a_second(std::int64_t passed_ns) const;

  std::int64_t bursts() const { return bursts_; }
  std::int64_t spent_ns() const { return spent_ns_; }
  std::int64_t trapped() const { return trapped_; }
  // How many calls may lie between two pauses of a program whose bursts are to be spread over them.
  double most_spread() const { return 4 * calls_; }
  double most_cost() const { return most_cost_; }

 private:
  double most_cost_;
  double calls_ = 100;
  double a_burst_ns_ = 1e6;  // what one takes, lately; at first assumed to be dear
  std::int64_t bursts_ = 0, spent_ns_ = 0, trapped_ = 0;
  std::mt19937_64 random_;
};

}  // namespace luaspy
