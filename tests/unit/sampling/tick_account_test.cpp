#include "sampling/tick_account.h"

#include <catch2/catch.hpp>

#include "support/fake_target.h"

namespace luaspy::tick_account_test {
namespace {

using fake::at_ms;
using fake::FakeThread;
using fake::ns_a_ms;

constexpr std::chrono::milliseconds interval(10);

// One thread, and ticks of 10 ms: tick n is at 10 n ms.
struct Ticks {
  void handle(std::int64_t tick, bool slept = false, std::int64_t skipped = 0) {
    const double time = 10.0 * static_cast<double>(tick);
    const Thread::Schedule now = thread.schedule();
    account.account({tick, at_ms(time), at_ms(time), skipped}, interval, thread, &now, slept, unseen);
  }
  std::vector<std::int64_t> counts() const {
    return {unseen.idle, unseen.waited, unseen.late, unseen.elsewhere, unseen.not_stopped, unseen.in_vain};
  }

  FakeThread thread;
  TickAccount account{at_ms(0)};
  UnseenTicks unseen;
};

using Counts = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a tick that is handled in its turn leaves nothing to account for", "[unit]") {
  Ticks ticks;
  for (std::int64_t tick = 1; tick <= 5; ++tick) {
    ticks.thread.run(10 * ns_a_ms);
    ticks.handle(tick);
    CHECK(ticks.account.number() == tick);
    CHECK(ticks.account.passed_ns() == 10 * ns_a_ms);
  }
  CHECK(ticks.counts() == Counts{0, 0, 0, 0, 0, 0});
}

TEST_CASE("the ticks of a thread begin with the first one that is handled", "[unit]") {
  Ticks ticks;
  ticks.handle(7);
  CHECK(ticks.counts() == Counts{0, 0, 0, 0, 0, 0});
  CHECK(ticks.account.passed_ns() == 10 * ns_a_ms);  // no more than an interval, however long it has lived
}

TEST_CASE("ticks that nobody came to are late by the share that the thread had of a CPU", "[unit]") {
  Ticks ticks;
  ticks.handle(1);
  ticks.thread.run(70 * ns_a_ms);
  ticks.handle(11);
  CHECK(ticks.counts() == Counts{0, 3, 6, 0, 0, 0});  // nine: 70 of 100 ms
  CHECK(ticks.account.passed_ns() == 100 * ns_a_ms);
}

TEST_CASE("of a thread that slept, the ticks that nobody came to are idle", "[unit]") {
  Ticks ticks;
  ticks.handle(1, true);
  ticks.handle(11, true);
  CHECK(ticks.counts() == Counts{9, 0, 0, 0, 0, 0});
}

TEST_CASE("ticks that were left out for all are nobody's", "[unit]") {
  Ticks ticks;
  ticks.handle(1);
  ticks.thread.run(100 * ns_a_ms);
  ticks.handle(11, false, 9);
  CHECK(ticks.counts() == Counts{0, 0, 0, 0, 0, 0});
  ticks.thread.run(100 * ns_a_ms);
  ticks.handle(21, false, 13);
  CHECK(ticks.counts() == Counts{0, 0, 5, 0, 0, 0});  // four of nine were left out
}

TEST_CASE("ticks lost because the thread was on another CPU are counted as such, once", "[unit]") {
  Ticks ticks;
  ticks.handle(1);
  ticks.account.move();
  ticks.thread.run(20 * ns_a_ms);
  ticks.handle(3);
  CHECK(ticks.counts() == Counts{0, 0, 0, 1, 0, 0});
  ticks.thread.run(20 * ns_a_ms);
  ticks.handle(5);
  CHECK(ticks.counts() == Counts{0, 0, 1, 1, 0, 0});
}

TEST_CASE("where the kernel does not say who had a CPU, each tick that nobody came to is late", "[unit]") {
  Ticks ticks;
  ticks.thread.has = {0, 0, 0};
  ticks.handle(1);
  ticks.handle(11);
  CHECK(ticks.counts() == Counts{0, 0, 9, 0, 0, 0});
}

TEST_CASE("a clock that ran ahead makes no tick negative, and none twice", "[unit]") {
  Ticks ticks;
  ticks.handle(1);
  ticks.thread.run(500 * ns_a_ms);  // of 100: counted up to the end of a long slice
  ticks.handle(11);
  CHECK(ticks.counts() == Counts{0, 0, 9, 0, 0, 0});
  ticks.thread.has.on_cpu = 0;
  ticks.handle(21);
  CHECK(ticks.counts() == Counts{0, 9, 9, 0, 0, 0});
}

TEST_CASE("a thread that has ended has no more ticks", "[unit]") {
  Ticks ticks;
  ticks.handle(1);
  ticks.account.end();
  CHECK(ticks.account.number() == std::numeric_limits<std::int64_t>::max());
}

}  // namespace luaspy::tick_account_test
