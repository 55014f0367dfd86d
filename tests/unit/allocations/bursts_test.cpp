// Bursts in a program that exists here only: what is trapped, in which order, and what comes of it when something
// comes in between.

#include "allocations/bursts.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "support/fake_allocating.h"

namespace luaspy::bursts_test {
namespace {

using fake::AllocatingProgram;
using fake::Clock;
using namespace std::chrono_literals;

class Losses : public AllocationSink {
 public:
  void add(ThreadId, const Tick&, const AllocationSample&, Sample&) override {}
  void add_loss(Loss loss) override { losses.push_back(loss); }
  void look(const AllocationCounts&) override {}
  std::vector<Loss> losses;
};

// Does not read the sample's stack, as there is none: it says which call it is.
class TestedBursts : public Bursts {
 public:
  TestedBursts(AllocatingProgram& program, BurstState& state, AllocationSink& sink, AllocationCounts& counts,
               TracedThreads& threads, Loop loop)
      : Bursts(state, sink, counts, threads, std::move(loop)), program_(program) {}
  struct Sampled {
    std::size_t step = 0;  // of the program
    double bytes = 0;      // that it stands for
    std::vector<CallTrap::Call> calls;
  };
  std::vector<Sampled> samples;
  Outcome result = Outcome::sampled;
  void lose_samples() { result = Outcome::lost; }

 protected:
  Outcome sample(Allocator& allocator, Trap&, std::unique_ptr<TracedThread> stop) override {
    CHECK(stop->by_own_signal());
    samples.push_back({program_.position - 1, allocator.burst.bytes, allocator.burst.calls});
    return result;
  }

 private:
  AllocatingProgram& program_;
};

// A program, its Lua as luaspy knows it, and bursts.
struct World {
  explicit World(std::function<AllocatingProgram::Step(std::size_t)> steps) {
    program.steps = std::move(steps);
    ActiveState active;
    active.lua = &program.lua;
    active.G = AllocatingProgram::G;
    allocators.push_back(std::make_unique<Allocator>(program.memory, fake::no_thread, program.thread, active, 1));
    allocator().may_sleep = false;
    state.pace = BurstPace(0.03, 1);
  }
  Allocator& allocator() { return *allocators.front(); }
  OpenBurst& burst() { return allocator().burst; }
  std::int64_t growing() const {
    return std::accumulate(bursts.samples.begin(), bursts.samples.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& each) { return sum + sums_of(each.calls).growing; });
  }

  AllocatingProgram program;
  Losses sink;
  AllocationCounts counts;
  BurstState state{3};
  fake::FakeTracedThreads threads{program};
  Allocators allocators;
  double passed = 0;
  TestedBursts bursts{program,
                      state,
                      sink,
                      counts,
                      threads,
                      {fake::start,
                       [] { return false; },
                       [this]() -> Allocators& { return allocators; },
                       [](Session&, const std::shared_ptr<Thread>&, const ActiveState&) {},
                       [this](Allocator&, double bytes, double) { passed += bytes; },
                       {}}};
};

AllocationCall made(std::uint64_t size) { return {0, 5, size}; }
AllocationCall freed(std::uint64_t size) { return {0x1000, size, 0}; }
AllocatingProgram::Step steady(std::size_t) { return {1us, made(48)}; }

}  // namespace

TEST_CASE("a burst traps as many calls that grow as were drawn, and its last one is the sample", "[unit]") {
  World world([](std::size_t i) { return AllocatingProgram::Step{1us, i % 3 == 0 ? freed(48) : made(48)}; });
  world.bursts.start(world.allocator(), 5000);
  REQUIRE(world.bursts.samples.size() == 1);
  const auto& sampled = world.bursts.samples[0];
  CHECK(sampled.bytes == 5000);
  CHECK(sums_of(sampled.calls).growing == world.burst().wanted);
  CHECK(allocation_call(sampled.calls.back().arguments).growth() == 48);
  CHECK(sampled.step % 3 != 0);
  CHECK(world.counts.bursts == 1);
  CHECK(world.passed == 48.0 * static_cast<double>(world.burst().wanted));
  CHECK_FALSE(world.burst().is_open);
  CHECK_FALSE(world.program.stands);
  CHECK_FALSE(world.program.trap.armed);
}

TEST_CASE("the thread ends in the middle of a burst: the next one stands for what that had stood for", "[unit]") {
  World world(steady);
  world.program.at_call = [&] { world.program.has_ended = world.program.trap.calls.size() == 5; };
  world.bursts.start(world.allocator(), 5000);
  CHECK(world.bursts.samples.empty());
  CHECK_FALSE(world.burst().is_open);
  CHECK(world.allocator().kept_bytes == 5000);
  CHECK(world.counts.cut == 1);
  CHECK_FALSE(world.bursts.traces(world.program.thread->tid()));
}

TEST_CASE("a signal of the program's own in a burst is delivered, and the burst goes on", "[unit]") {
  World world(steady);
  bool sent = false;
  world.program.at_call = [&] {
    if (world.program.trap.armed && world.program.trap.calls.size() == 5 && !std::exchange(sent, true))
      world.program.stop(false, 10);
  };
  world.bursts.start(world.allocator(), 5000);
  while (world.burst().is_open) world.bursts.sleep_until(world.program.now + 1ms);
  REQUIRE(sent);
  REQUIRE(world.bursts.samples.size() == 1);
  CHECK(world.growing() == world.burst().wanted);
}

TEST_CASE("an interrupted burst goes on with the calls that are left", "[unit]") {
  World world([](std::size_t) { return AllocatingProgram::Step{2ms, made(48)}; });  // they come slowly
  world.bursts.start(world.allocator(), 5000);
  REQUIRE(world.burst().is_open);
  CHECK(world.program.now - fake::start >= 50ms);  // as long as calls come
  CHECK(world.program.now - fake::start < 60ms);
  world.bursts.interrupt();
  CHECK_FALSE(world.program.trap.armed);
  const std::int64_t before = world.burst().sums.growing;
  CHECK(before > 10);
  world.bursts.sleep_until(world.program.now + 100ms);
  CHECK(world.burst().sums.growing == before);
  world.bursts.go_on();
  while (world.burst().is_open) world.bursts.sleep_until(world.program.now + 10ms);
  REQUIRE(world.bursts.samples.size() == 1);
  CHECK(world.growing() == world.burst().wanted);
  CHECK(world.counts.cut == 0);
}

TEST_CASE("while a collector only frees, a burst ends without a sample", "[unit]") {
  World world([](std::size_t i) { return AllocatingProgram::Step{1us, i < 10 ? made(48) : freed(48)}; });
  world.bursts.start(world.allocator(), 5000);
  CHECK(world.bursts.samples.empty());
  CHECK(world.counts.frees == 1);
  CHECK_FALSE(world.burst().is_open);
  CHECK(world.allocator().kept_bytes == 5000);
}

TEST_CASE("what a burst without a sample stood for is the next one's", "[unit]") {
  World world(steady);
  world.bursts.lose_samples();
  world.bursts.start(world.allocator(), 5000);
  CHECK(world.allocator().kept_bytes == 5000);
  world.bursts.result = {};
  world.bursts.start(world.allocator(), 1000);
  REQUIRE(world.bursts.samples.size() == 2);
  CHECK(world.bursts.samples[1].bytes == 6000);
  CHECK(world.allocator().kept_bytes == 0);
}

TEST_CASE("a heap that changes without trapped calls is not this function's", "[unit]") {
  World world([](std::size_t) { return AllocatingProgram::Step{1h, made(48)}; });
  world.bursts.start(world.allocator(), 5000);
  REQUIRE(world.burst().is_open);
  for (int probe = 0; probe < 3; ++probe) {
    CHECK(world.bursts.watch(world.allocator()));
    world.program.heap() += 100;  // by another function, or in another thread
  }
  CHECK_FALSE(world.bursts.watch(world.allocator()));
  CHECK_FALSE(world.burst().is_open);
  CHECK(world.allocator().function == 0);  // it is read again
}

TEST_CASE("a thread that nobody knows and that has stopped goes on with its signal", "[unit]") {
  World world(steady);
  REQUIRE(world.bursts.prepare(world.allocator()));
  world.threads.stranger = 77;
  world.bursts.sleep_until(world.program.now + 1ms);
  CHECK(world.threads.detached == std::vector<std::pair<pid_t, int>>{{77, 10}});
}

TEST_CASE("a burst that has come to its end while luaspy has no time for it is made longer", "[unit]") {
  World world([](std::size_t) { return AllocatingProgram::Step{2ms, made(48)}; });
  world.bursts.start(world.allocator(), 5000);
  REQUIRE(world.burst().is_open);
  const std::int64_t wanted = world.burst().wanted;
  // Another of luaspy's waits, for the same thread's process: the signal comes by the way.
  while (world.program.trap.armed && !world.program.stands) world.program.run_until(world.program.now + 1ms);
  world.bursts.interrupt();
  CHECK(world.bursts.samples.empty());
  world.bursts.go_on();
  while (world.burst().is_open) world.bursts.sleep_until(world.program.now + 10ms);
  REQUIRE(world.bursts.samples.size() == 1);
  CHECK(world.growing() >= wanted);
}

// workloads/allocations.lua, callbacks, as LuaJIT compiles it: 161 calls of one kind or another, 7 of the table that
// grows, and a pause as long as all of them.
TEST_CASE("bursts of a real pace come to the end of a round before whose begin the program pauses", "[unit][figures]") {
  constexpr std::size_t round = 168, last = 161;
  World world([](std::size_t i) {
    const std::size_t place = i % round;
    return AllocatingProgram::Step{place == 0 ? 30us : 180ns, made(place == 0 ? 64 : place < last ? 48 : 400)};
  });
  world.program.a_trap = 5us;
  world.state.pace = BurstPace(0.3, 1);
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int> pause(3'000'000, 5'000'000);
  double at_end = 0, all = 0;
  for (int i = 0; i < 1500; ++i) {
    world.bursts.sleep_until(world.program.now + std::chrono::nanoseconds(pause(random)));
    world.bursts.start(world.allocator(), 5000);
    while (world.burst().is_open) world.bursts.sleep_until(world.program.now + 1ms);
    const auto& sampled = world.bursts.samples.back();
    world.state.kinds.add(sampled.calls, 1000);
    const double weight = world.state.kinds.sample(allocation_call(sampled.calls.back().arguments));
    if (i < 200) continue;
    all += weight, at_end += sampled.step % round >= last ? weight : 0;
  }
  CHECK(100 * at_end / all == Approx(100.0 * (round - last) / round).margin(0.8));
}

}  // namespace luaspy::bursts_test
