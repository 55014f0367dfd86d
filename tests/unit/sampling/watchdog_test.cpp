#include "sampling/watchdog.h"

#include <catch2/catch.hpp>
#include <limits>

#include "attach/urgency.h"

namespace luaspy::watchdog_test {

TEST_CASE("a thread that starves is helped by the least that helps", "[unit]") {
  // It keeps to a CPU though there are others.
  CHECK(remedy_for({true, true, false, 1}, true) == Remedy::move);
  CHECK(remedy_for({true, false, false, 1}, false) == Remedy::move);
  // It may go anywhere already: it waits for some looks, and then takes what is left to ordinary threads.
  CHECK(remedy_for({false, true, false, 1}, true) == Remedy::none);
  CHECK(remedy_for({false, true, false, 4}, true) == Remedy::lower);
  CHECK(remedy_for({false, false, false, 100}, false) == Remedy::none);
  // The recording should have ended.
  CHECK(remedy_for({true, true, true, 1}, true) == Remedy::raise);
  CHECK(remedy_for({false, false, true, 1}, true) == Remedy::raise);
  CHECK(remedy_for({true, false, true, 1}, false) == Remedy::move);
}

TEST_CASE("urgencies are in the order in which the kernel prefers threads", "[unit]") {
  CHECK(Urgency() < Urgency::real_time(1));
  CHECK(Urgency::real_time(98) < Urgency::real_time(99));
  CHECK(Urgency::real_time(99) < Urgency::deadline());
  CHECK(Urgency().priority_above() == 1);
  CHECK(Urgency::real_time(98).priority_above() == 99);
  CHECK(Urgency::real_time(99).priority_above() == 0);
  CHECK(Urgency::deadline().priority_above() == 0);
  CHECK(Urgency::deadline().priority() == 0);
  CHECK(urgency_text(Urgency::real_time(10)) == "real-time priority 10");
  CHECK(urgency_of(0) == Urgency());
}

TEST_CASE("a thread that rests, or waits as long as threads of a busy machine do, is not late", "[unit]") {
  constexpr std::int64_t ms = 1'000'000, never = std::numeric_limits<std::int64_t>::max();
  CHECK(!is_late(1000 * ms, never, false));  // Ward::pause()
  CHECK(!is_late(1000 * ms, 1500 * ms, false));
  CHECK(!is_late(1000 * ms, 960 * ms, false));
  CHECK(is_late(1000 * ms, 959 * ms, false));
  CHECK(!is_late(1000 * ms, 990 * ms, true));
  CHECK(is_late(1000 * ms, 989 * ms, true));
}

TEST_CASE("a late thread stands still if it got no CPU between two looks", "[unit]") {
  const auto at = [](std::int64_t on_cpu, std::uint64_t runs) {
    Thread::Schedule schedule;
    schedule.on_cpu = on_cpu, schedule.runs = runs;
    return schedule;
  };
  CpuProgress progress;
  CHECK(!progress.stands_still(at(100, 3)));  // nothing to compare it with
  CHECK(progress.stands_still(at(100, 3)));
  CHECK(progress.stands_still(at(100, 3)));
  CHECK(!progress.stands_still(at(101, 3)));  // it computes
  CHECK(!progress.stands_still(at(101, 4)));  // it was given a CPU just now
  CHECK(progress.stands_still(at(101, 4)));
  progress.forget();  // it rested in between
  CHECK(!progress.stands_still(at(101, 4)));
  CpuProgress unknown;  // the kernel does not count it
  CHECK(!unknown.stands_still(at(0, 0)));
  CHECK(!unknown.stands_still(at(0, 0)));
}

}  // namespace luaspy::watchdog_test
