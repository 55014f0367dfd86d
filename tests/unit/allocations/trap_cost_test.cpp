#include "allocations/trap_cost.h"

#include <catch2/catch.hpp>

namespace luaspy::trap_cost_test {
namespace {

constexpr system::Clock::time_point start{};

// The first so many µs after start, the others so many µs after one another.
std::vector<CallTrap::Call> calls(const std::vector<int>& distances) {
  std::vector<CallTrap::Call> calls;
  for (const int distance : distances)
    calls.push_back({(calls.empty() ? start : calls.back().at) + std::chrono::microseconds(distance), {}});
  return calls;
}

}  // namespace

TEST_CASE("what trapped calls cost leaves out the program's own pauses", "[unit]") {
  TrapCost cost;
  CHECK(cost.of(start, calls({50, 10, 10})) == 70'000);  // not known yet
  CHECK(cost.of(start, {}) == 0);
  cost.add(start, calls({50, 10, 11, 10, 12, 10, 3000, 10, 11, 10, 10}));
  CHECK(cost.of(start, calls({50, 10, 10, 10})) == 80'000);
  CHECK(cost.of(start, calls({50, 10, 15, 10})) == 85'000);    // a slow trap
  CHECK(cost.of(start, calls({50, 10, 5000, 10})) == 80'000);  // a trap, and a pause
  CHECK(cost.of(start, calls({9000, 10, 10, 10})) == 80'000);  // it had nothing to allocate at first
  CHECK(cost.going_on() == 40'000);
  // Calls that all have computing between them show little; a faster trap is believed sooner.
  cost.add(start, calls(std::vector<int>(20, 100)));
  CHECK(cost.of(start, calls({50, 100})) < 63'000);
  for (int i = 0; i < 20; ++i) cost.add(start, calls(std::vector<int>(20, 5)));
  CHECK(cost.of(start, calls({5, 100})) < 11'000);
}

TEST_CASE("a thread that slept when the trap was armed took no longer for that", "[unit]") {
  TrapCost cost;
  cost.add(start, calls({50, 10, 10, 10, 10, 10, 10, 10, 10, 10}));
  for (int i = 0; i < 1000; ++i) cost.add(std::nullopt, calls({20'000, 10, 10, 10, 10, 10, 10, 10, 10, 10}));
  CHECK(cost.of(std::nullopt, calls({20'000, 10, 10})) == 30'000);
  CHECK(cost.of(start, calls({50, 10, 10})) == 70'000);
  // One that stood still may sleep afterwards, too: that is no more believed than twice of what is usual.
  for (int i = 0; i < 10; ++i) cost.add(start, calls({20'000, 10}));
  CHECK(cost.of(start, calls({20'000, 10, 10})) < 80'000);
}

}  // namespace luaspy::trap_cost_test
