#include "sampling/stop_budget.h"

#include <catch2/catch.hpp>
#include <functional>
#include <random>

namespace luaspy::stop_budget_test {
namespace {

struct Run {
  std::int64_t ticks = 0, taken = 0, stopped = 0, time = 0;
  double share() const { return static_cast<double>(stopped) / static_cast<double>(time); }
};

// Runs ticks at an interval, each with a stop of the length that `stop` returns, if the budget
// allows it. Times are in ns.
Run run(double share, std::int64_t interval, std::int64_t ticks,
        const std::function<std::int64_t(std::int64_t now)>& stop) {
  StopBudget budget(share);
  Run run;
  for (; run.ticks < ticks; ++run.ticks, run.time += interval) {
    if (run.time < budget.paid_at()) continue;
    const std::int64_t stopped = stop(run.time);
    budget.add(1, stopped);
    budget.end_tick(run.time);
    ++run.taken;
    run.stopped += stopped;
  }
  return run;
}

}  // namespace

TEST_CASE("stops that cost less than the bound cost no tick", "[unit]") {
  CHECK(run(0.1, 10'000'000, 1000, [](std::int64_t) { return 900'000; }).taken == 1000);
  CHECK(run(0.1, 100'000, 100'000, [](std::int64_t) { return 9'900; }).taken == 100'000);
  CHECK(run(1, 100'000, 100'000, [](std::int64_t) { return 199'000; }).taken == 100'000);  // 100 % is unlimited
}

TEST_CASE("stops that cost more make the ticks fewer, by as much as needed", "[unit]") {
  for (const double share : {0.1, 0.01, 0.005}) {
    for (const std::int64_t stop : {15'000, 30'000, 130'000}) {
      const Run much = run(share, 100'000, 1'000'000, [&](std::int64_t) { return stop; });
      INFO(share << " " << stop);
      CHECK(much.share() == Approx(share).epsilon(0.05));
    }
  }
}

TEST_CASE("one long stop is paid back", "[unit]") {
  std::int64_t last = 0, longest_pause = 0;
  const Run once = run(0.1, 1'000'000, 2'000, [&](std::int64_t now) {
    longest_pause = std::max(longest_pause, now - last);
    last = now;
    return now == 500'000'000 ? 100'000'000 : 10'000;
  });
  // 100 ms at 10 % require 1 s; its last part is not visible, as no ticks are put off in it.
  CHECK(once.taken < 1400);
  CHECK(once.taken > 1000);
  CHECK(longest_pause < 550'000'000);  // half a second may be owed, so that the other half is paid at once
  CHECK(last > 1'990'000'000);
}

TEST_CASE("stops of any length are within the bound after a short time, too", "[unit]") {
  for (const std::int64_t stop : {1'000'000, 5'000'000, 20'000'000, 44'000'000, 300'000'000}) {
    for (const std::int64_t ticks : {200, 500, 2000, 20'000}) {
      const Run long_ones = run(0.1, 10'000'000, ticks, [&](std::int64_t) { return stop; });
      INFO(stop << " " << ticks);
      // Half a second may be owed, and the last stop.
      CHECK(static_cast<double>(long_ones.stopped) <=
            0.1 * (static_cast<double>(long_ones.time) + 5e8) + static_cast<double>(stop));
    }
  }
}

TEST_CASE("stacks that take long to read keep their share of the samples", "[unit]") {
  std::minstd_rand random(1);
  std::exponential_distribution<double> length(1.0 / 5e6);  // 5 ms of each kind, on average
  bool deep = false;
  double change = 0;
  std::int64_t deep_samples = 0;
  const Run mixed = run(0.1, 200'000, 1'000'000, [&](std::int64_t now) {
    while (static_cast<double>(now) >= change) change += length(random), deep = !deep;
    deep_samples += deep ? 1 : 0;
    return deep ? 190'000 : 20'000;
  });
  CHECK(mixed.share() == Approx(0.1).epsilon(0.05));
  CHECK(static_cast<double>(deep_samples) / static_cast<double>(mixed.taken) == Approx(0.5).margin(0.03));
}

TEST_CASE("the thread that is stopped most counts, not the sum", "[unit]") {
  StopBudget budget(0.1);
  std::int64_t stopped = 0, taken = 0;
  constexpr std::int64_t interval = 100'000, ticks = 100'000;
  for (std::int64_t tick = 0; tick < ticks; ++tick) {
    if (tick * interval < budget.paid_at()) continue;
    ++taken;
    for (int tid = 1; tid <= 8; ++tid) budget.add(tid, tid == 3 ? 20'000 : 9'000);
    budget.end_tick(tick * interval);
    stopped += 20'000;
  }
  CHECK(static_cast<double>(stopped) / (ticks * interval) == Approx(0.1).epsilon(0.05));
  CHECK(taken == Approx(ticks / 2).epsilon(0.05));
}

}  // namespace luaspy::stop_budget_test
