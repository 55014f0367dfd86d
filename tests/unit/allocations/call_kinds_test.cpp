#include "allocations/call_kinds.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace luaspy {
namespace {

using TrappedCalls = std::vector<CallTrap::Call>;

// A new block; `type` as Lua tells it.
CallTrap::Call made(std::uint64_t size, std::uint64_t type = 5) { return {{}, {0x1000, 0, type, size}}; }

AllocationCall call(const CallTrap::Call& trapped) { return allocation_call(trapped.arguments); }

}  // namespace

TEST_CASE("a sample stands for the calls of its kind, in all bursts", "[unit]") {
  CallKinds kinds;
  kinds.add(TrappedCalls{made(56), made(56), made(40), {{}, {0x1000, 0x2000, 56, 0}}}, 10);
  CHECK(kinds.sample(call(made(56))) == Approx(20));
  // The next burst has none of 40 as its last call, and the one after that has.
  kinds.add(TrappedCalls{made(56), made(40)}, 10);
  CHECK(kinds.sample(call(made(56))) == Approx(0.8 * 15 + 0.2 * 10));
  kinds.add(TrappedCalls{made(40)}, 30);
  CHECK(kinds.sample(call(made(40))) == Approx(50));
}

TEST_CASE("kinds are told apart by size, type, and whether a block grows", "[unit]") {
  const CallTrap::Call grown = {{}, {0x1000, 0x2000, 56, 112}};
  CallKinds kinds;
  kinds.add(TrappedCalls{made(56, 5), made(56, 6), grown, made(1000), made(1020), made(2000), made(60), made(64)}, 1);
  CHECK(kinds.sample(call(made(56, 5))) == Approx(1));
  CHECK(kinds.sample(call(made(56, 6))) == Approx(1));
  CHECK(kinds.sample(call(grown)) == Approx(1));
  CHECK(kinds.sample(call(made(1010))) == Approx(2));
  CHECK(kinds.sample(call(made(2000))) == Approx(1));
  CHECK(kinds.sample(call(made(63))) == Approx(2));
}

TEST_CASE("kinds without a sample are told", "[unit]") {
  CallKinds kinds;
  CHECK(kinds.unsampled().percent_of_bytes == 0);
  kinds.add(TrappedCalls{made(100), made(100), made(100), made(700)}, 5);
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
    kinds.add(loop, each);
    calls += each;
    const bool is_large = random() % 10 == 0;
    (is_large ? large : small) += kinds.sample(call(is_large ? made(4000) : made(32)));
  }
  CHECK(small == Approx(9 * calls).epsilon(0.02));
  CHECK(large == Approx(calls).epsilon(0.15));  // 50 samples: by their number alone 0.3
}

}  // namespace luaspy
