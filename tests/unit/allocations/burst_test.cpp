#include "allocations/burst.h"

#include <catch2/catch.hpp>

namespace luaspy::burst_test {
namespace {

using TrappedCalls = std::vector<CallTrap::Call>;

// lua_Alloc(ud, ptr, osize, nsize)
CallTrap::Call call(std::uint64_t pointer, std::uint64_t old_size, std::uint64_t new_size) {
  return {{}, {0x1000, pointer, old_size, new_size}};
}

}  // namespace

TEST_CASE("what a call of an allocation function adds to the heap", "[unit]") {
  // A new table of 5.4: `osize` is its type.
  CHECK(allocation_call(call(0, 5, 56).arguments).growth() == 56);
  CHECK(allocation_call(call(0, 5, 56).arguments).is_new());
  // An array that doubles; one that becomes smaller; a block that is freed; nothing at all.
  CHECK(allocation_call(call(0x2000, 64, 128).arguments).growth() == 64);
  CHECK_FALSE(allocation_call(call(0x2000, 64, 128).arguments).is_new());
  CHECK(allocation_call(call(0x2000, 64, 32).arguments).growth() == 0);
  CHECK(allocation_call(call(0x2000, 64, 0).arguments).growth() == 0);
  CHECK(allocation_call(call(0, 0, 0).arguments).growth() == 0);
  CHECK_FALSE(allocation_call(call(0, 0, 0).arguments).is_new());
}

TEST_CASE("the sums of a burst count what grows", "[unit]") {
  const BurstSums sums = sums_of(
      TrappedCalls{call(0, 5, 56), call(0x2000, 64, 0), call(0x3000, 16, 32), call(0, 4, 25)});
  CHECK(sums.growing == 3);
  CHECK(sums.bytes == 56 + 16 + 25);
  CHECK(sums_of({}).growing == 0);
  CHECK(sums_of(TrappedCalls{call(0, 4, 1 << 20), call(0, 5, 56)}).bytes == 4096 + 56);
  BurstSums longer = sums;
  longer += sums_of(TrappedCalls{call(0x2000, 64, 0), call(0, 4, 87)});
  CHECK(longer.mean() == Approx(46));
  CHECK(longer.mean_or(30) == Approx((4 * 46 + 12 * 30) / 16.0));
  CHECK(sums_of(TrappedCalls(20, call(0, 5, 56))).mean_or(1000) == Approx(56));
}

TEST_CASE("a loop is seen by sizes that repeat", "[unit]") {
  TrappedCalls loop;
  for (int i = 0; i < 10; ++i) {
    for (const std::uint64_t size : {56, 32, 24}) loop.push_back(call(0, 5, size));
    if (i % 3 == 0) loop.push_back(call(0x2000, 56, 0));  // the collector's, in no step with it
  }
  CHECK(period_of(loop) == 3);
  CHECK(period_of(TrappedCalls(20, call(0, 5, 56))) == 1);
  TrappedCalls grows;
  for (std::uint64_t size = 1; size < 40; ++size) grows.push_back(call(0, 4, size * size));
  CHECK(period_of(grows) == 0);
  CHECK(period_of(TrappedCalls{}) == 0);
  CHECK(period_of(TrappedCalls{call(0, 5, 56), call(0, 5, 56)}) == 0);  // too few to tell
}

}  // namespace luaspy::burst_test
