#include "sampling/tick_grid.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace luaspy::tick_grid_test {
namespace {

using std::chrono::nanoseconds;

const TickGrid::Clock::time_point start{std::chrono::seconds(12345) + nanoseconds(678)};
constexpr double rates[] = {0.01, 1, 99, 100, 997, 10'000};
constexpr std::uint64_t seeds[] = {0, 1, 0xffff'ffff'ffff'ffff};

}  // namespace

TEST_CASE("ticks come one after the other, each within half an interval of its place", "[unit]") {
  for (const double rate : rates) {
    for (const std::uint64_t seed : seeds) {
      const TickGrid grid(rate, start, seed);
      bool are_apart = true, are_near = true;
      nanoseconds least = nanoseconds::max(), most = nanoseconds::min();
      for (std::int64_t tick = 1; tick <= 20'000; ++tick) {
        are_apart &= grid.time_of(tick) - grid.time_of(tick - 1) >= grid.apart();
        const nanoseconds beside = grid.time_of(tick) - (start + grid.interval() * tick);
        are_near &= 2 * std::abs(beside.count()) <= grid.interval().count() + 2;  // rounded
        least = std::min(least, beside), most = std::max(most, beside);
      }
      CHECK(are_apart);
      CHECK(are_near);
      // The jitter is in both directions, and reaches its bound.
      const double bound = static_cast<double>((grid.interval() - grid.apart()).count()) / 2;
      CHECK(static_cast<double>(least.count()) < -0.99 * bound);
      CHECK(static_cast<double>(most.count()) > 0.99 * bound);
    }
  }
}

TEST_CASE("the tick after a time is later than it, and the one before that is not", "[unit]") {
  for (const double rate : {0.01, 1.0, 99.0, 100.0, 997.0, 10'000.0, 1e9 / 103}) {
    const TickGrid grid(rate, start, 7);
    const nanoseconds step = grid.interval() / 13 + nanoseconds(1);
    bool is_later = true, is_first = true, goes_on = true;
    for (nanoseconds at(0); at < 1000 * grid.interval(); at += step) {
      const std::int64_t tick = grid.after(start + at);
      is_later &= grid.time_of(tick) > start + at;
      is_first &= grid.time_of(tick - 1) <= start + at;
      goes_on &= grid.after(grid.time_of(tick)) == tick + 1;
    }
    CHECK(is_later);
    CHECK(is_first);
    CHECK(goes_on);
  }
}

// A loop of a game, or of a server that polls, may take as long as an interval.
TEST_CASE("a program that repeats itself at the rate of the ticks has right shares", "[unit]") {
  constexpr std::int64_t ticks = 4000;
  constexpr double part = 0.75;
  const double rate = GENERATE(100, 1000);
  for (const double ratio : {0.5, 0.999, 1.0, 1.0001, 2.0, 3.0}) {
    for (int phase = 0; phase < 10; ++phase) {
      const TickGrid grid(rate, start, 7);
      const double period = ratio * static_cast<double>(grid.interval().count());
      std::int64_t in_part = 0;
      for (std::int64_t tick = 0; tick < ticks; ++tick) {
        const auto since = static_cast<double>((grid.time_of(tick) - start + grid.interval()).count());
        const double where = since / period + phase / 10.0;
        in_part += where - std::floor(where) < part ? 1 : 0;
      }
      INFO(rate << " Hz, " << ratio << " intervals, phase " << phase);
      const double without_ticks = static_cast<double>(grid.apart().count()) /
                                   static_cast<double>(grid.interval().count());
      CHECK(std::abs(static_cast<double>(in_part) / ticks - part) <
            5 * std::sqrt(part * (1 - part) / ticks) + without_ticks);
    }
  }
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

}  // namespace luaspy::tick_grid_test
