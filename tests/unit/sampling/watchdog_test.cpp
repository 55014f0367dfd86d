#include "sampling/watchdog.h"

#include <signal.h>
#include <unistd.h>

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

// On a busy machine this thread may starve in earnest: what is checked is a look in which it did not.
TEST_CASE("a watchdog leaves threads alone that get a CPU, or want none", "[unit]") {
  constexpr std::int64_t little = 15'000'000;  // ns; less than the watchdog is patient with
  constexpr int most_tries = 100;
  ::signal(SIGALRM, [](int) {});  // as system::watch_signals() does: it ends waits
  const Thread own(::getpid(), ::gettid());
  const auto checked = [&](auto work) {
    make_ordinary(::gettid());  // a try before may have been lent a priority
    const std::int64_t before = own.schedule().waited_for_cpu;
    Watchdog watchdog(2, usable_cpus());
    watchdog.main().expect(system::Clock::now());
    work(system::Clock::now() + 4 * Watchdog::often);
    const bool starved = watchdog.main().has_starved();
    watchdog.help_main_to_end();
    if (own.schedule().waited_for_cpu - before > little) return false;
    CHECK(!starved);
    CHECK(urgency_of(0) == Urgency());
    return true;
  };
  const auto computes = [](system::Clock::time_point until) {
    while (system::Clock::now() < until) continue;
  };
  const auto sleeps = [](system::Clock::time_point until) { (void)system::sleep_until(until); };
  int tries = 0;
  while (tries < most_tries && !checked(computes)) ++tries;
  while (tries < most_tries && !checked(sleeps)) ++tries;
  CHECK(tries < most_tries);
}

}  // namespace luaspy
