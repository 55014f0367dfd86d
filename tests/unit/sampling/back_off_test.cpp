#include "sampling/back_off.h"

#include <catch2/catch.hpp>

namespace luaspy::back_off_test {
namespace {

using namespace std::chrono_literals;

// In how many of so many ticks a thread is looked at, if each look ends like that.
int looks(BackOff& back_off, std::int64_t from, std::int64_t ticks, std::chrono::nanoseconds interval, Loss loss) {
  int count = 0;
  for (std::int64_t tick = from; tick < from + ticks; ++tick) {
    if (!back_off.is_due(tick, interval)) continue;
    ++count;
    back_off.record(loss);
  }
  return count;
}

}  // namespace

TEST_CASE("looks that fail, of whatever kind, become rare", "[unit]") {
  for (const Loss loss : {Loss::incomplete, Loss::unreadable, Loss::refused, Loss::elsewhere, Loss::not_stopped}) {
    INFO(name(loss));
    BackOff back_off;
    // 8 at once, then after 2, 4, … 64 ticks, and once a second from then on.
    CHECK(looks(back_off, 0, 1000, 10ms, loss) <= 8 + 6 + 9);
    CHECK(back_off.reason() == loss);
  }
}

TEST_CASE("a thread is tried again each second, and as usual after one look that gave a sample", "[unit]") {
  BackOff back_off;
  looks(back_off, 0, 100'000, 10ms, Loss::refused);
  CHECK(looks(back_off, 100'000, 101, 10ms, Loss::none) > 0);
  CHECK(looks(back_off, 200'000, 100, 10ms, Loss::none) == 100);
  BackOff slow;
  looks(slow, 0, 100, 200ms, Loss::refused);
  CHECK(looks(slow, 100, 10, 200ms, Loss::refused) >= 2);  // in 2 s
}

TEST_CASE("threads that end or sleep are no failures", "[unit]") {
  BackOff back_off;
  CHECK(looks(back_off, 0, 100, 10ms, Loss::moved) == 100);
  CHECK(looks(back_off, 100, 100, 10ms, Loss::ended) == 100);
}

}  // namespace luaspy::back_off_test
