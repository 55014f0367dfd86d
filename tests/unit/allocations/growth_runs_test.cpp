#include "allocations/growth_runs.h"

#include <catch2/catch.hpp>

namespace luaspy::growth_runs_test {

TEST_CASE("a Lua that wakes for some µs is told from one that allocates for a while", "[unit]") {
  GrowthRuns runs;
  CHECK_FALSE(runs.are_short());  // nothing is known
  runs.add(3000);
  CHECK_FALSE(runs.are_short());  // it may go on
  runs.add(0);
  CHECK(runs.are_short());
  CHECK(runs.usual() == 3000);
  for (int i = 0; i < 50; ++i) {
    runs.add(i % 10 == 0 ? 30'000 : 3000);  // a late probe sees ten of them
    runs.add(0);
    CHECK(runs.are_short());
  }
  CHECK(runs.usual() < 8000);
  // It allocates on and on: its collector makes the heap smaller now and then.
  for (int i = 0; i < 20; ++i) runs.add(i % 3 == 0 ? -2000 : 1000);
  CHECK_FALSE(runs.are_short());
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 20; ++j) runs.add(1000);
    runs.add(0);
  }
  CHECK_FALSE(runs.are_short());
  // Probes while it sleeps change nothing.
  for (int i = 0; i < 100; ++i) runs.add(0);
  CHECK_FALSE(runs.are_short());
  for (int i = 0; i < 40; ++i) runs.add(100), runs.add(0);
  CHECK(runs.are_short());
}

}  // namespace luaspy::growth_runs_test
