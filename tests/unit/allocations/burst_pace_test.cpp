#include "allocations/burst_pace.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

namespace luaspy::burst_pace_test {
namespace {

constexpr std::int64_t second = 1'000'000'000;

// A program in which a trapped call takes so long: as many bursts as the pace allows. Returns what
// they have taken of the time.
double cost_of(BurstPace& pace, std::int64_t a_call_ns, int seconds, const Loops& loops) {
  std::int64_t now = 0;
  while (now < seconds * second) {
    now += static_cast<std::int64_t>(1e9 / pace.bursts_a_second(now));
    const std::int64_t calls = pace.draw();
    pace.add(calls, calls, calls * a_call_ns, loops);
    now += calls * a_call_ns;
  }
  return static_cast<double>(pace.spent_ns()) / static_cast<double>(now);
}

}  // namespace

TEST_CASE("bursts take what they may, and not more", "[unit]") {
  for (const std::int64_t a_call_ns : {2'000, 10'000, 100'000}) {
    CAPTURE(a_call_ns);
    BurstPace pace(0.03, 1);
    CHECK(cost_of(pace, a_call_ns, 60, {}) < 0.032);
  }
  BurstPace pace(0.03, 1);
  CHECK(cost_of(pace, 10'000, 60, {}) > 0.025);
  // Also in a short recording.
  BurstPace soon(0.03, 1);
  CHECK(cost_of(soon, 10'000, 3, {}) < 0.037);
}

TEST_CASE("a burst is some times longer than a loop of the program, as far as the cost allows", "[unit]") {
  BurstPace unknown(0.03, 1), loop(0.03, 1), long_loop(0.03, 1), dear(0.03, 1), pauses(0.03, 1);
  (void)cost_of(unknown, 10'000, 60, {});
  (void)cost_of(loop, 10'000, 60, {.period = 10});
  (void)cost_of(long_loop, 10'000, 60, {.period = 500});
  (void)cost_of(dear, 1'000'000, 60, {.period = 500});
  (void)cost_of(pauses, 10'000, 60, {.between_pauses = 168});
  CHECK(pauses.calls() == Approx(168).epsilon(0.02));
  CHECK(unknown.calls() == Approx(100).epsilon(0.02));
  CHECK(loop.calls() == Approx(100).epsilon(0.02));       // it may be a part of a longer one
  CHECK(long_loop.calls() == Approx(300).epsilon(0.05));  // 10 bursts a second of 3 ms are 3 %
  CHECK(dear.calls() == Approx(16).epsilon(0.02));
}

TEST_CASE("the number of calls is anywhere around the average, in step with no loop", "[unit]") {
  BurstPace pace(0.03, 1);
  constexpr std::size_t loop = 17;
  std::array<int, loop> ends{};
  double sum = 0;
  std::int64_t least = 1000, most = 0;
  constexpr int draws = 10'000;
  for (int i = 0; i < draws; ++i) {
    const std::int64_t number = pace.draw();
    sum += static_cast<double>(number);
    ++ends[static_cast<std::size_t>(number) % loop];
    least = std::min(least, number), most = std::max(most, number);
  }
  CHECK(least >= 25);
  CHECK(most <= 175);
  CHECK(std::abs(sum / draws - 100) < 2);
  const auto [seldom, often] = std::ranges::minmax_element(ends);
  CHECK(*often < 1.35 * *seldom);
}

TEST_CASE("bursts that begin when a thread wakes are spread over what it does then", "[unit]") {
  BurstPace pace(0.03, 1);
  constexpr int a_wake = 300, parts = 3, bursts = 3000;  // calls
  std::array<int, parts> ends{};
  for (int i = 0; i < bursts; ++i) ++ends[static_cast<std::size_t>((pace.draw(a_wake) - 1) % a_wake * parts / a_wake)];
  for (const int part : ends) CHECK(std::abs(part - bursts / parts) < bursts / 20);
  // Without that, most end in the first part, and few in the last one.
  std::array<int, parts> unspread{};
  for (int i = 0; i < bursts; ++i) ++unspread[static_cast<std::size_t>((pace.draw() - 1) % a_wake * parts / a_wake)];
  CHECK(unspread.front() > bursts / 2 - bursts / 20);
  CHECK(unspread.back() == 0);
  for (int i = 0; i < bursts; ++i) CHECK(static_cast<double>(pace.draw(1e9)) <= 6 * pace.calls());
}

}  // namespace luaspy::burst_pace_test
