#include "agent/rate_budget.h"

#include <catch2/catch.hpp>

namespace luaspy::rate_budget_test {

TEST_CASE("the rate is lowered until luaspy takes no more than it may, and comes back", "[unit]") {
  RateBudget budget(19, 0.01);
  budget.add(0.02);
  CHECK(budget.rate() == Approx(9.5));
  for (int i = 0; i < 100; ++i) budget.add(5);
  CHECK(budget.rate() == 1);
  budget.add(0.008);  // little room: it stays
  CHECK(budget.rate() == 1);
  for (int i = 0; i < 100; ++i) budget.add(0.001);
  CHECK(budget.rate() == 19);
  RateBudget slow(0.5, 0.01);
  slow.add(1);
  CHECK(slow.rate() == 0.5);
}

// What a look costs is proportional to the rate, beside what looking for processes costs.
TEST_CASE("the rate settles near the bound", "[unit]") {
  RateBudget budget(100, 0.01);
  for (int i = 0; i < 50; ++i) budget.add(0.002 + 0.0004 * budget.rate());
  const double used = 0.002 + 0.0004 * budget.rate();
  CHECK(used <= 0.0125);
  CHECK(used >= 0.005);
}

}  // namespace luaspy::rate_budget_test
