#include "luastate/collector.h"

#include <catch2/catch.hpp>

namespace luaspy::luastate_collector_test {
namespace {

constexpr std::string_view incremental = "incremental";

CollectorState state(std::string_view phase, std::int64_t estimate, std::uint8_t dead_white = 1) {
  CollectorState state;
  state.known = true;
  state.phase = phase;
  state.mode = incremental;
  state.dead_white = dead_white;
  state.estimate = estimate;
  return state;
}

}  // namespace

TEST_CASE("two collections between two readings show, although the whites are the same again", "[unit]") {
  const CollectorState pause = state("GCSpause", 1000);
  CHECK_FALSE(shows_atomic_step(pause, pause));
  CHECK(shows_atomic_step(pause, state("GCSpause", 1000, 2)));  // one collection
  // Two: what is in use is another amount.
  CHECK(shows_atomic_step(pause, state("GCSpause", 900)));
  CHECK(shows_atomic_step(pause, state("GCSpause", 1100)));
  CHECK(shows_atomic_step(state("GCSpropagate", 1000), state("GCSpropagate", 1100)));
  // It is behind where it was.
  CHECK(shows_atomic_step(pause, state("GCSsweep", 1000)));
  CHECK(shows_atomic_step(state("GCSpropagate", 1000), state("GCSswpallgc", 1000)));
  CHECK(shows_atomic_step(state("GCSswpend", 1000), state("GCSswpallgc", 900)));
}

TEST_CASE("a collector that goes on in its cycle shows no atomic step", "[unit]") {
  CHECK_FALSE(shows_atomic_step(state("GCSpause", 1000), state("GCSpropagate", 1000)));
  CHECK_FALSE(shows_atomic_step(state("GCSsweepstring", 1000), state("GCSsweep", 800)));  // what it frees is less in
                                                                                          // use
  CHECK_FALSE(shows_atomic_step(state("GCSsweep", 1000), state("GCSfinalize", 800)));
  CHECK_FALSE(shows_atomic_step(state("GCSfinalize", 1000), state("GCSpause", 900)));
  CHECK(shows_atomic_step(state("GCSsweep", 1000), state("GCSsweep", 1001)));
  // In the step itself, the whites may be the old ones or the new ones.
  CHECK_FALSE(shows_atomic_step(state("GCSatomic", 1000), state("GCSswpallgc", 1100)));
  // The generational mode stays in one phase, and has an estimate for other things.
  CollectorState minor = state("GCSpropagate", 1000), next = state("GCSpropagate", 1100);
  minor.mode = next.mode = "generational";
  CHECK_FALSE(shows_atomic_step(minor, next));
  // 5.5 estimates nothing. What cannot be read shows nothing.
  CollectorState unknown = state("GCSpause", 900);
  unknown.estimate.reset();
  CHECK_FALSE(shows_atomic_step(state("GCSpause", 1000), unknown));
  unknown.known = false;
  CHECK_FALSE(shows_atomic_step(state("GCSsweep", 1000), unknown));
}

}  // namespace luaspy::luastate_collector_test
