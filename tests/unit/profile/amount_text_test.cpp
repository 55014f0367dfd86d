// The weight of samples as text for people.

#include "profile/amount_text.h"

#include <catch2/catch.hpp>
#include <limits>

namespace luaspy::amount_text_test {

TEST_CASE("amounts in each unit", "[unit]") {
  CHECK(amount_text(3'650'000'000, Unit::nanoseconds) == "3.65 s");
  CHECK(amount_text(0, Unit::nanoseconds) == "0.00 s");
  CHECK(amount_text(0, Unit::bytes) == "0 B");
  CHECK(amount_text(1023, Unit::bytes) == "1023 B");
  CHECK(amount_text(1024, Unit::bytes) == "1.0 KiB");
  CHECK(amount_text(1'258'291, Unit::bytes) == "1.2 MiB");
  CHECK(amount_text(-1'258'291, Unit::bytes) == "-1.2 MiB");
  CHECK(amount_text((1000 << 20) - (1 << 18), Unit::bytes) == "999.8 MiB");
  CHECK(amount_text((1000 << 20) - 1, Unit::bytes) == "1000 MiB");
  CHECK(amount_text((1 << 30) - 1, Unit::bytes) == "1.0 GiB");
  CHECK(amount_text(std::numeric_limits<std::int64_t>::max(), Unit::bytes) == "8.0 EiB");
  CHECK(amount_text(0, Unit::objects) == "0 objects");
  CHECK(amount_text(1, Unit::objects) == "1 object");
  CHECK(amount_text(999, Unit::objects) == "999 objects");
  CHECK(amount_text(3400, Unit::objects) == "3,400 objects");
  CHECK(amount_text(-1'234'567, Unit::objects) == "-1,234,567 objects");
  CHECK(amount_text(-999, Unit::objects) == "-999 objects");
}

TEST_CASE("costs in a table do not repeat what its head says", "[unit]") {
  CHECK(cost_text(3400, By::samples, Unit::objects) == "3400");
  CHECK(cost_text(3400, By::weight, Unit::objects) == "3,400");
  CHECK(cost_text(3400, By::weight, Unit::bytes) == "3.3 KiB");
  CHECK(cost_text(340'000'000, By::weight, Unit::nanoseconds) == "0.34 s");
  CHECK(cost_heading(By::samples, Unit::bytes) == "Samples");
  CHECK(cost_heading(By::weight, Unit::nanoseconds) == "Time");
  CHECK(cost_heading(By::weight, Unit::bytes) == "Bytes");
  CHECK(cost_heading(By::weight, Unit::objects) == "Objects");
}

}  // namespace luaspy::amount_text_test
