#include "sampling/log_choice.h"

#include <catch2/catch.hpp>

namespace luaspy::log_choice_test {

TEST_CASE("a log of switches that was too costly is opened again when its thread switches less", "[log_choice]") {
  LogChoice choice;
  CHECK(choice.wants_log(500, 0, 0.5));  // 1,000 a second
  CHECK(choice.wants_log(999, 0, 0.5));
  CHECK_FALSE(choice.wants_log(1001, 0, 0.5));  // more than 2,000
  CHECK_FALSE(choice.wants_log(700, 0, 0.5));   // between the two it stays what it is
  CHECK(choice.wants_log(499, 0, 0.5));
  CHECK(choice.wants_log(700, 0, 0.5));
}

TEST_CASE("switches that luaspy causes do not close the log", "[log_choice]") {
  LogChoice choice;
  CHECK(choice.wants_log(5000, 5000, 0.5));  // 10 kHz
  CHECK_FALSE(choice.wants_log(6001, 5000, 0.5));
  CHECK(choice.wants_log(100, 5000, 0.5));  // it slept
}

}  // namespace luaspy::log_choice_test
