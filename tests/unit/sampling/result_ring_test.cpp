#include "sampling/result_ring.h"

#include <catch2/catch.hpp>
#include <thread>

#include "support/fake_target.h"

namespace luaspy::result_ring_test {
namespace {

using fake::FakeProcess;
using fake::FakeThread;

std::shared_ptr<TrackedThread> tracked(FakeProcess& process) {
  return std::make_shared<TrackedThread>(process, std::make_shared<FakeThread>(), fake::start);
}

}  // namespace

TEST_CASE("a full ring takes nothing, and has room for one result when one is taken", "[unit]") {
  EventTables tables;
  FakeProcess process(tables);
  const auto thread = tracked(process);
  ResultRing ring;
  CHECK(ring.front() == nullptr);
  std::int64_t number = 0;
  for (std::size_t i = 0; i < ResultRing::size; ++i) {
    TickResult* const found = ring.open(thread);
    REQUIRE(found != nullptr);
    found->number = ++number;
    ring.put();
  }
  CHECK(ring.open(thread) == nullptr);
  REQUIRE(ring.front() != nullptr);
  CHECK(ring.front()->number == 1);
  ring.pop();
  TickResult* const found = ring.open(thread);
  REQUIRE(found != nullptr);
  found->number = ++number;
  ring.put();
  CHECK(ring.open(thread) == nullptr);
  for (std::int64_t expected = 2; expected <= number; ++expected) {
    REQUIRE(ring.front() != nullptr);
    CHECK(ring.front()->number == expected);
    ring.pop();
  }
  CHECK(ring.front() == nullptr);
}

TEST_CASE("what was opened and not put is not there", "[unit]") {
  EventTables tables;
  FakeProcess process(tables);
  const auto thread = tracked(process);
  ResultRing ring;
  ring.open(thread)->loss = Loss::unreadable;
  CHECK(ring.front() == nullptr);
  CHECK(ring.open(thread)->loss == Loss::none);
}

// A Look keeps what it knows of its target's memory.
TEST_CASE("a place in the ring does not serve two programs", "[unit]") {
  EventTables tables;
  FakeProcess process(tables);
  const auto before = tracked(process);
  ResultRing ring;
  TickResult* const first = ring.open(before);
  first->look.stopped_ns = 5;
  CHECK(ring.open(before)->look.stopped_ns == 5);
  process.exec();
  const auto after = tracked(process);
  CHECK(ring.open(after)->look.stopped_ns == 0);
}

TEST_CASE("a ring loses and doubles nothing between two threads", "[unit]") {
  EventTables tables;
  FakeProcess process(tables);
  const auto thread = tracked(process);
  ResultRing ring;
  constexpr std::int64_t most = 100'000;
  std::thread adds([&] {
    for (std::int64_t number = 0; number < most;) {
      TickResult* const found = ring.open(thread);
      if (found == nullptr) {
        std::this_thread::yield();
        continue;
      }
      found->number = number++;
      ring.put();
    }
  });
  bool in_order = true;
  for (std::int64_t expected = 0; expected < most;) {
    if (ring.front() == nullptr) {
      std::this_thread::yield();
      continue;
    }
    in_order &= ring.front()->number == expected++;
    ring.pop();
  }
  adds.join();
  CHECK(in_order);
  CHECK(ring.front() == nullptr);
}

}  // namespace luaspy::result_ring_test
