#include "profile/stop_times.h"

#include <catch2/catch.hpp>

namespace luaspy::stop_times_test {

TEST_CASE("quantiles of stop times are right within 3 %", "[unit]") {
  StopTimes times;
  CHECK(times.quantile_ns(0.5) == 0);
  for (int i = 1; i <= 1000; ++i) times.add(i * 1000);
  CHECK(times.count() == 1000);
  CHECK(times.total_ns() == 500'500'000);
  CHECK(times.quantile_ns(0.5) == Approx(500'000).epsilon(0.03));
  CHECK(times.quantile_ns(0.99) == Approx(990'000).epsilon(0.03));
}

}  // namespace luaspy::stop_times_test
