#include "allocations/call_kinds.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "allocations/burst_pace.h"

namespace luaspy::call_kinds_test {
namespace {

using TrappedCalls = std::vector<CallTrap::Call>;

// A new block; `type` as Lua tells it.
CallTrap::Call made(std::uint64_t size, std::uint64_t type = 5) { return {{}, {0x1000, 0, type, size}}; }

AllocationCall call(const CallTrap::Call& trapped) { return allocation_call(trapped.arguments); }

}  // namespace

// So many samples of it that it is not rare.
void make_common(CallKinds& kinds, const CallTrap::Call& trapped) {
  constexpr int enough = 10;
  for (int i = 0; i < enough; ++i) {
    kinds.add(TrappedCalls{trapped}, 1);
    (void)kinds.sample(call(trapped));
  }
}

TEST_CASE("a sample stands for the calls of its kind, in all bursts, and for its part of those to come", "[unit]") {
  CallKinds kinds;
  kinds.add(TrappedCalls{made(56)}, 100);
  CHECK(kinds.sample(call(made(56))) == Approx(200));  // as many will come until the next sample
  for (int i = 2; i <= 40; ++i) {
    kinds.add(TrappedCalls{made(56)}, 100);
    const double weight = kinds.sample(call(made(56)));
    CHECK(weight > 95);
    CHECK(weight < 125);
  }
  // A burst whose sample is another call.
  kinds.add(TrappedCalls{made(56), {{}, {0x1000, 0x2000, 56, 0}}}, 10000);
  CHECK(kinds.sample(call(made(56))) > 1000);
}

TEST_CASE("kinds are told apart by size, type, and whether a block grows", "[unit]") {
  const CallTrap::Call grown = {{}, {0x1000, 0x2000, 56, 112}};
  const TrappedCalls all = {made(56, 5), made(56, 6), grown, made(1000), made(2000), made(64)};
  CallKinds kinds;
  for (const CallTrap::Call& each : all) make_common(kinds, each);
  kinds.add(TrappedCalls{made(56, 5)}, 1e6);
  for (const CallTrap::Call& other : {made(56, 6), grown, made(2000), made(64)}) CHECK(kinds.sample(call(other)) < 3);
  CHECK(kinds.sample(call(made(56, 5))) > 1e5);
  kinds.add(TrappedCalls{made(1020)}, 1e6);
  CHECK(kinds.sample(call(made(1000))) > 1e5);  // sizes that are near each other are one kind
}

// A round of 168 calls, the last seven of another kind, and a pause as long as they take: half of all bursts begin with
// the round's first call.
TEST_CASE("bursts come to the end of a loop after which the program pauses", "[unit]") {
  constexpr std::size_t round = 168, last = 161;
  constexpr int bursts = 2000, learning = 100;
  const auto in_round = [](std::size_t place) { return place == 0 ? made(64) : place < last ? made(48) : made(400); };
  std::mt19937_64 random(3);
  CallKinds kinds;
  BurstPace pace(0.1, 1);
  double at_end = 0, all = 0;
  for (int burst = 0; burst < bursts; ++burst) {
    const std::size_t begin = random() % 2 == 0 ? 0 : random() % round;
    const auto count = static_cast<std::size_t>(pace.draw());
    TrappedCalls calls;
    for (std::size_t i = 0; i < count; ++i) calls.push_back(in_round((begin + i) % round));
    kinds.add(calls, 1000);
    const double weight = kinds.sample(call(calls.back()));
    pace.add(static_cast<std::int64_t>(count), static_cast<std::int64_t>(count), 1'000'000,
             {period_of(calls), kinds.calls_between_pauses()});
    if (burst < learning) continue;
    all += weight, at_end += (begin + count - 1) % round >= last ? weight : 0;
  }
  CHECK(pace.calls() > 140);
  CHECK(pace.calls() < 250);
  CHECK(100 * at_end / all == Approx(100.0 * (round - last) / round).margin(0.8));
}

TEST_CASE("that a program pauses is not made up", "[unit]") {
  std::mt19937_64 random(3);
  CallKinds kinds;
  for (int burst = 0; burst < 300; ++burst) {
    CHECK(kinds.calls_between_pauses() == 0);
    TrappedCalls calls;
    for (int i = 0; i < 50; ++i) calls.push_back(made(16 + 8 * (random() % 5)));
    kinds.add(calls, 1);
  }
}

// Twenty sizes of which each is a part in 400 of the calls, as when tables grow. 80 samples cannot have some of each.
TEST_CASE("kinds that are too rare to be sampled are not missing", "[unit]") {
  std::mt19937_64 random(7);
  TrappedCalls loop(380, made(48));
  for (std::uint64_t i = 0; i < 20; ++i) loop.push_back(made(136 + i * 8 % 256, 10 + i));
  double rare = 0, all = 0;
  for (int recording = 0; recording < 100; ++recording) {
    CallKinds kinds;
    for (int burst = 0; burst < 80; ++burst) {
      kinds.add(loop, 1);
      const CallTrap::Call& last = loop[random() % loop.size()];
      const double weight = kinds.sample(call(last));
      all += weight;
      if (call(last).growth() != 48) rare += weight;
    }
  }
  CHECK(100 * rare / all == Approx(5).margin(0.7));
}

TEST_CASE("a large block among small ones that are rare stands for no more than all of them", "[unit]") {
  CallKinds kinds;
  kinds.add(TrappedCalls(10000, made(48)), 100000);
  for (int i = 0; i < 50; ++i) (void)kinds.sample(call(made(48)));
  kinds.add(TrappedCalls(100, made(64)), 100);
  kinds.add(TrappedCalls{made(20000)}, 1);
  CHECK(kinds.sample(call(made(20000))) * 20000 <= 2 * (100 * 64 + 20000));
}

TEST_CASE("kinds without a sample are told", "[unit]") {
  CallKinds kinds;
  CHECK(kinds.unsampled().percent_of_bytes == 0);
  kinds.add(TrappedCalls{made(100), made(100), made(100), made(700)}, 20);
  (void)kinds.sample(call(made(100)));
  CHECK(kinds.unsampled().percent_of_bytes == Approx(70));
  CHECK(kinds.unsampled().largest == 700);
  (void)kinds.sample(call(made(600)));
  CHECK(kinds.unsampled().percent_of_bytes == 0);
  CHECK(kinds.unsampled().largest == 0);
}

// A loop that makes 9 small blocks and a large one. The last calls of bursts come upon them by chance;
// what samples stand for does not: after the n-th sample of a kind, it is off by some samples only.
TEST_CASE("samples together stand for all calls", "[unit]") {
  CallKinds kinds;
  std::mt19937_64 random(1);
  TrappedCalls loop(9, made(32));
  loop.push_back(made(4000));
  double small = 0, large = 0, calls = 0;
  for (int burst = 0; burst < 500; ++burst) {
    const double each = std::uniform_real_distribution<double>(1, 3)(random);
    kinds.add(loop, 10 * each);
    calls += each;
    const bool is_large = random() % 10 == 0;
    (is_large ? large : small) += kinds.sample(call(is_large ? made(4000) : made(32)));
  }
  CHECK(small == Approx(9 * calls).epsilon(0.02));
  CHECK(large == Approx(calls).epsilon(0.15));  // 50 samples: by their number alone 0.3
}

}  // namespace luaspy::call_kinds_test
