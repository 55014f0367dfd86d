#include "base/time_text.h"

#include <catch2/catch.hpp>

namespace luaspy {

TEST_CASE("times are written in UTC and as the clock on the wall shows them", "[unit]") {
  constexpr std::time_t leap_day = 951'782'399;
  CHECK(utc_text(0, "%Y-%m-%dT%H:%M:%SZ") == "1970-01-01T00:00:00Z");
  CHECK(utc_text(leap_day, "%Y-%m-%d %H:%M") == "2000-02-28 23:59");
  CHECK(utc_text(leap_day + 1, "%Y%m%d-%H%M%S") == "20000229-000000");
  CHECK(utc_text(253'402'300'799, "%Y-%m-%d %H:%M:%S") == "9999-12-31 23:59:59");
  // Zones differ from each other by whole quarters of an hour.
  CHECK(local_text(leap_day, "%S") == "59");
}

}  // namespace luaspy
