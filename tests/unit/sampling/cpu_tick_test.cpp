// One CPU's ticks on a machine, with threads, of the test's own.

#include "sampling/cpu_tick.h"

#include <catch2/catch.hpp>

#include "support/fake_target.h"

namespace luaspy::cpu_tick_test {
namespace {

using fake::at_ms;
using fake::FakeHost;
using fake::FakeLooks;
using fake::FakeProcess;
using fake::FakeThread;
using fake::ns_a_ms;
using Look = FakeLooks::Look;
using Looked = std::vector<Look>;
using Tracked = std::shared_ptr<TrackedThread>;

// CPU 0 of a machine, and ticks of 10 ms: tick n is due at 10 n ms.
struct Cpu {
  explicit Cpu(int cpus = 2, bool idle = false) : host(cpus, 100, idle) {}

  Tracked add(int on_cpu = 0) {
    auto thread = std::make_shared<FakeThread>(static_cast<pid_t>(host.threads.size()) + 1);
    thread->where.cpu = on_cpu;
    host.threads.push_back(std::make_shared<TrackedThread>(process, thread, at_ms(0)));
    return host.threads.back();
  }
  static FakeThread& in(const Tracked& thread) { return static_cast<FakeThread&>(*thread->thread); }
  void tick(std::int64_t number, double late_ms = 0, bool in_time = true, bool placed = true) {
    const double due = 10.0 * static_cast<double>(number);
    ticks.run({number, at_ms(due), at_ms(due + late_ms), host.skipped_ticks}, in_time, placed);
  }
  // It has run since the last tick, all the time.
  void tick_after_running(const Tracked& thread, std::int64_t number) {
    in(thread).run(10 * ns_a_ms, 0);
    tick(number);
  }
  std::vector<TickResult::Kind> results() {
    std::vector<TickResult::Kind> kinds;
    for (; ring.front() != nullptr; ring.pop()) kinds.push_back(ring.front()->kind);
    return kinds;
  }
  static std::vector<std::int64_t> unseen(const Tracked& thread) {
    const UnseenTicks& of = thread->unseen;
    return {of.idle, of.waited, of.late, of.elsewhere, of.not_stopped, of.in_vain};
  }

  EventTables tables;
  FakeProcess process{tables};
  FakeHost host;
  FakeLooks looks;
  ResultRing ring;
  CpuTick ticks{host, looks, ring, 0};
};

using Counts = std::vector<std::int64_t>;
using Kind = TickResult::Kind;
using Kinds = std::vector<TickResult::Kind>;

}  // namespace

TEST_CASE("tick: a thread that executes here is looked at once in each tick", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  for (std::int64_t number = 1; number <= 3; ++number) cpu.tick_after_running(thread, number);
  CHECK(cpu.looks.stops == Looked{{thread.get(), 1, false}, {thread.get(), 2, false}, {thread.get(), 3, false}});
  CHECK(Cpu::unseen(thread) == Counts{0, 0, 0, 0, 0, 0});
  CHECK(cpu.ticks.was_needed());
  CHECK_FALSE(cpu.ticks.was_needed());
}

TEST_CASE("tick: a thread of another CPU is that one's", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add(1);
  cpu.tick_after_running(thread, 1);
  CHECK(cpu.looks.stops.empty());
  CHECK(thread->ticks.number() == -1);
}

TEST_CASE("tick: who came too late does not look, and says so", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  cpu.tick_after_running(thread, 1);
  Cpu::in(thread).run(10 * ns_a_ms, 0);
  cpu.tick(2, 0.1, false);
  CHECK(cpu.looks.stops.size() == 1);
  CHECK(Cpu::unseen(thread) == Counts{0, 0, 1, 0, 0, 0});
  CHECK(thread->ticks.number() == 2);  // it is accounted for
}

TEST_CASE("tick: five late ticks in a row are five, whoever comes to the sixth", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  cpu.tick_after_running(thread, 1);
  Cpu::in(thread).run(60 * ns_a_ms, 0);
  cpu.tick(7);
  CHECK(cpu.looks.stops.size() == 2);
  CHECK(Cpu::unseen(thread) == Counts{0, 0, 5, 0, 0, 0});
}

TEST_CASE("tick: a thread that sleeps on is counted, or a result if that was asked for", "[unit]") {
  for (const bool idle : {false, true}) {
    Cpu cpu(2, idle);
    const Tracked thread = cpu.add();
    Cpu::in(thread).where.letter = 'S';
    cpu.tick(1);
    CHECK(cpu.looks.asleep == Looked{{thread.get(), 1, false}});  // what it waits in is read once
    cpu.tick(2);
    cpu.tick(3);
    CHECK(cpu.looks.asleep.size() == 1);
    CHECK(cpu.results() == (idle ? Kinds{Kind::asleep_again, Kind::asleep_again} : Kinds{}));
    CHECK(Cpu::unseen(thread) == Counts{idle ? 0 : 2, 0, 0, 0, 0, 0});
  }
}

TEST_CASE("tick: what does not fit into the ring is late", "[unit]") {
  Cpu cpu(2, true);
  const Tracked thread = cpu.add();
  Cpu::in(thread).where.letter = 'S';
  const auto room = static_cast<std::int64_t>(ResultRing::size);
  for (std::int64_t number = 1; number <= room + 4; ++number) cpu.tick(number);
  CHECK(Cpu::unseen(thread) == Counts{0, 0, 3, 0, 0, 0});  // the first tick was a look
  CHECK(cpu.results().size() == ResultRing::size);
}

TEST_CASE("tick: of two threads that want this CPU, the one that had it is looked at", "[unit]") {
  Cpu cpu;
  const Tracked one = cpu.add(), other = cpu.add();
  const auto now_ns = [](std::int64_t tick) {
    return system::to_ns(at_ms(10.0 * static_cast<double>(tick)).time_since_epoch());
  };
  cpu.looks.own_counted = now_ns(1);
  Cpu::in(one).counted = now_ns(1), Cpu::in(other).counted = now_ns(1) - 4 * ns_a_ms;
  Cpu::in(one).run(5 * ns_a_ms), Cpu::in(other).run(5 * ns_a_ms);
  cpu.tick(1);
  // At the next tick it is the other one's turn.
  Cpu::in(one).counted = now_ns(2) - 4 * ns_a_ms, Cpu::in(other).counted = now_ns(2);
  Cpu::in(one).run(5 * ns_a_ms), Cpu::in(other).run(5 * ns_a_ms);
  cpu.tick(2);
  CHECK(cpu.looks.stops == Looked{{one.get(), 1, false}, {other.get(), 2, false}});
  CHECK(Cpu::unseen(one) == Counts{0, 1, 0, 0, 0, 0});
  CHECK(Cpu::unseen(other) == Counts{0, 1, 0, 0, 0, 0});
}

TEST_CASE("tick: a thread that had no CPU since the last tick waited for one", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  cpu.tick_after_running(thread, 1);
  Cpu::in(thread).run(0, 1, 10 * ns_a_ms);
  cpu.tick(2);
  CHECK(cpu.looks.stops.size() == 1);
  CHECK(Cpu::unseen(thread) == Counts{0, 1, 0, 0, 0, 0});
}

TEST_CASE("tick: a thread that has moved is handed to the CPU sampler of its new CPU", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  cpu.tick_after_running(thread, 1);
  Cpu::in(thread).where.cpu = 1;
  cpu.tick_after_running(thread, 2);
  CHECK(cpu.looks.stops.size() == 1);
  CHECK(thread->cpu == 1);
  CHECK(thread->ticks.number() == 1);
  // There it comes to its tick, or not: that was lost by the move.
  CpuTick there(cpu.host, cpu.looks, cpu.ring, 1);
  Cpu::in(thread).run(10 * ns_a_ms, 0);
  there.run({3, at_ms(30), at_ms(30), 0}, true, true);
  CHECK(cpu.looks.stops.back() == Look{thread.get(), 3, false});
  CHECK(Cpu::unseen(thread) == Counts{0, 0, 0, 1, 0, 0});
}

TEST_CASE("tick: on a CPU that luaspy may not use, the thread that had most of it is stopped from here", "[unit]") {
  Cpu cpu(1);
  const Tracked one = cpu.add(), other = cpu.add();
  Cpu::in(one).where.cpu = Cpu::in(other).where.cpu = 5;
  cpu.tick(1);
  cpu.looks.stops.clear();
  Cpu::in(one).run(3 * ns_a_ms), Cpu::in(other).run(7 * ns_a_ms);
  cpu.tick(2);
  CHECK(cpu.looks.stops == Looked{{other.get(), 2, true}});
  CHECK(one->unseen.waited >= 1);
}

TEST_CASE("tick: a thread that is gone is lost once, and has no more ticks", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  cpu.tick_after_running(thread, 1);
  Cpu::in(thread).where.letter = '?';
  Cpu::in(thread).has = {};
  cpu.tick(2);
  REQUIRE(cpu.ring.front() != nullptr);
  CHECK(cpu.ring.front()->loss == Loss::ended);
  CHECK(cpu.ring.front()->number == 2);
  CHECK(cpu.results() == Kinds{Kind::loss});
  cpu.tick(3);
  CHECK(cpu.results().empty());
}

TEST_CASE("tick: a thread that was asked to stop and has not is not asked again", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  cpu.tick_after_running(thread, 1);
  thread->request.ask(0);
  cpu.tick_after_running(thread, 2);  // it runs on: it cannot be stopped
  cpu.tick(3);                        // it has no CPU on which it could stop
  CHECK(cpu.looks.stops.size() == 1);
  CHECK(Cpu::unseen(thread) == Counts{0, 1, 0, 0, 1, 0});
  thread->request.ask(1);  // another CPU sampler has asked it: that one counts its ticks
  cpu.tick_after_running(thread, 4);
  CHECK(Cpu::unseen(thread) == Counts{0, 1, 0, 0, 1, 0});
  thread->request.ask(0);
  cpu.looks.went_unheard = true;
  cpu.tick_after_running(thread, 5);
  CHECK(cpu.host.unheard == 1);
  thread->request.end();
  cpu.tick_after_running(thread, 6);
  CHECK(cpu.looks.stops.size() == 2);
}

TEST_CASE("tick: looks that fail in a row come less often, and those left out are counted", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  std::int64_t looks = 0;
  constexpr std::int64_t all = 100;
  for (std::int64_t number = 1; number <= all; ++number) {
    cpu.tick_after_running(thread, number);
    if (static_cast<std::int64_t>(cpu.looks.stops.size()) > looks) thread->looks.record(Loss::unreadable);
    looks = static_cast<std::int64_t>(cpu.looks.stops.size());
  }
  CHECK(looks < 20);
  CHECK(Cpu::unseen(thread) == Counts{0, 0, 0, 0, 0, all - looks});
}

TEST_CASE("tick: what precedes luaspy is handed to another CPU, and has waited if nobody came late", "[unit]") {
  for (const double late_ms : {0.0, 1.0}) {
    Cpu cpu;
    const Tracked thread = cpu.add();
    cpu.host.preceding = thread.get();
    Cpu::in(thread).run(5 * ns_a_ms);
    cpu.tick(1, late_ms);
    CHECK(cpu.looks.stops.empty());
    CHECK(thread->cpu == 1);
    CHECK(Cpu::unseen(thread) == (late_ms == 0 ? Counts{0, 1, 0, 0, 0, 0} : Counts{0, 0, 1, 0, 0, 0}));
  }
}

TEST_CASE("tick: a thread that somebody looks at is left alone", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  REQUIRE(thread->claim.try_take());
  cpu.tick_after_running(thread, 1);
  CHECK(cpu.looks.stops.empty());
  thread->claim.give_back();
  cpu.tick_after_running(thread, 2);
  CHECK(cpu.looks.stops.size() == 1);
  CHECK(thread->claim.try_take());  // it was given back
}

TEST_CASE("tick: the same tick twice is one", "[unit]") {
  Cpu cpu;
  const Tracked thread = cpu.add();
  cpu.tick_after_running(thread, 1);
  cpu.tick(1);
  CHECK(cpu.looks.stops.size() == 1);
  CHECK(Cpu::unseen(thread) == Counts{0, 0, 0, 0, 0, 0});
}

}  // namespace luaspy::cpu_tick_test
