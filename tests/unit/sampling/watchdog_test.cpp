#include "sampling/watchdog.h"

#include <signal.h>
#include <catch2/catch.hpp>

#include "attach/own_cpu.h"
#include "attach/urgency.h"

namespace luaspy {

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

TEST_CASE("a watchdog leaves threads alone that get a CPU, or want none", "[unit]") {
  ::signal(SIGALRM, [](int) {});  // as system::watch_signals() does: it ends waits
  Watchdog watchdog(2, usable_cpus());
  watchdog.main().expect(system::Clock::now());
  for (const auto end = system::Clock::now() + 4 * Watchdog::often; system::Clock::now() < end;) continue;
  CHECK(!watchdog.main().has_starved());
  watchdog.main().expect(system::Clock::now());
  (void)system::sleep_until(system::Clock::now() + 4 * Watchdog::often);
  CHECK(!watchdog.main().has_starved());
  watchdog.help_main_to_end();
  CHECK(urgency_of(0) == Urgency());
}

}  // namespace luaspy
