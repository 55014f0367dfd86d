#include "sampling/tick_grid.h"

#include <catch2/catch.hpp>

namespace luaspy {
namespace {

using std::chrono::nanoseconds;

const TickGrid::Clock::time_point start{std::chrono::seconds(12345) + nanoseconds(678)};
constexpr double rates[] = {0.01, 1, 99, 100, 997, 10'000};
constexpr std::uint64_t seeds[] = {0, 1, 0xffff'ffff'ffff'ffff};

}  // namespace

TEST_CASE("ticks come one after the other, each within a quarter of an interval of its place", "[unit]") {
  for (const double rate : rates) {
    for (const std::uint64_t seed : seeds) {
      const TickGrid grid(rate, start, seed);
      bool increase = true, are_near = true;
      nanoseconds least = nanoseconds::max(), most = nanoseconds::min();
      for (std::int64_t tick = 1; tick <= 20'000; ++tick) {
        increase &= grid.time_of(tick) > grid.time_of(tick - 1);
        const nanoseconds beside = grid.time_of(tick) - (start + grid.interval() * tick);
        are_near &= 4 * std::abs(beside.count()) <= grid.interval().count() + 4;  // rounded
        least = std::min(least, beside), most = std::max(most, beside);
      }
      CHECK(increase);
      CHECK(are_near);
      CHECK(5 * least < -grid.interval());  // the jitter is in both directions
      CHECK(5 * most > grid.interval());
    }
  }
}

TEST_CASE("the tick after a time is later than it, and the one that is two before it is not", "[unit]") {
  for (const double rate : rates) {
    const TickGrid grid(rate, start, 7);
    const nanoseconds step = grid.interval() / 13 + nanoseconds(1);
    bool is_later = true, is_soon = true, is_later_anyhow = true, goes_on = true;
    for (nanoseconds at(0); at < 1000 * grid.interval(); at += step) {
      const std::int64_t tick = grid.after(start + at);
      is_later &= grid.time_of(tick) > start + at;
      is_soon &= tick < 2 || grid.time_of(tick - 2) <= start + at;
      // Later whatever the jitter is: its bound, rounded down.
      is_later_anyhow &= grid.interval() * tick - grid.interval() / 4 - nanoseconds(1) > at;
      goes_on &= grid.after(grid.time_of(tick)) > tick;
    }
    CHECK(is_later);
    CHECK(is_soon);
    CHECK(is_later_anyhow);
    CHECK(goes_on);
  }
  // A rate at which the jitter's bound is not a whole number of ns.
  const TickGrid odd(1e9 / 103, start, 7);
  bool is_later = true;
  for (nanoseconds at(0); at < nanoseconds(1000); ++at)
    is_later &= odd.interval() * odd.after(start + at) - nanoseconds(26) > at;
  CHECK(is_later);
}

TEST_CASE("a time before the first tick has a tick after it", "[unit]") {
  const TickGrid grid(100, start, 7);
  for (const std::int64_t ms : {1, 9, 11, 1000})
    CHECK(grid.time_of(grid.after(start - std::chrono::milliseconds(ms))) > start - std::chrono::milliseconds(ms));
}

TEST_CASE("whoever asks for a tick's time gets the same answer, another seed another one", "[unit]") {
  const TickGrid one(997, start, 7), same(997, start, 7), other(997, start, 8);
  bool are_same = true;
  int differ = 0;
  for (std::int64_t tick = 1000; tick > 0; --tick) {
    are_same &= one.time_of(tick) == same.time_of(tick);
    differ += one.time_of(tick) != other.time_of(tick) ? 1 : 0;
  }
  CHECK(are_same);
  CHECK(differ > 900);
}

}  // namespace luaspy
