// What the collector costs is divided by who allocates, and nothing of it is lost.

#include "profile/collector_cost.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "output/summary.h"
#include "support/framed.h"

namespace luaspy::collector_cost_test {
namespace {

Frame lua_function(const char* name) { return {Frame::Kind::lua, name, "a.lua", 1, 0}; }

void add_samples(Profile& profile, const ThreadInfo& thread, VmState state, int count) {
  FramedSample sample;
  sample.vm_state = state;
  sample.stack = {lua_function("anything")};
  for (int i = 0; i < count; ++i) add_framed(profile, thread, {i, 10}, sample);
}

void add_bytes(Profile& profile, const ThreadInfo& thread, std::vector<const char*> stack, std::int64_t bytes) {
  FramedSample sample;
  for (const char* const name : stack) sample.stack.push_back(lua_function(name));
  add_framed(profile, thread, {0, bytes}, sample);
}

const CollectorCost::Row& row_of(const CollectorCost& cost, const std::string& text) {
  const auto row = std::ranges::find_if(
      cost.rows, [&](const CollectorCost::Row& each) { return cost.functions.texts[each.function] == text; });
  INFO(text);
  REQUIRE(row != cost.rows.end());
  return *row;
}

double sum_of_own(const CollectorCost& cost) {
  return std::accumulate(cost.rows.begin(), cost.rows.end(), 0.0,
                         [](double sum, const CollectorCost::Row& row) { return sum + row.own_time; });
}

Profile of_bytes() {
  Profile bytes;
  bytes.about.unit = Unit::bytes;
  return bytes;
}

}  // namespace

TEST_CASE("the collector's time is divided as the bytes are", "[unit]") {
  const ThreadInfo thread = {1, "lua", 1, "lua"};
  Profile time, bytes = of_bytes();
  add_samples(time, thread, VmState::interpreting, 150);
  add_samples(time, thread, VmState::collecting, 50);
  add_bytes(bytes, thread, {"main", "parse"}, 7000);
  add_bytes(bytes, thread, {"main", "parse", "parse", "trim"}, 1000);
  add_bytes(bytes, thread, {"main"}, 2000);
  const CollectorCost cost = collector_cost(time, bytes, By::samples);
  CHECK(cost.collecting == Approx(25));
  CHECK(cost.without_site == 0);
  CHECK(sum_of_own(cost) == Approx(cost.collecting));
  REQUIRE(cost.rows.size() == 3);
  CHECK(cost.functions.texts[cost.rows.front().function] == "parse (a.lua:1)");
  const CollectorCost::Row& parse = row_of(cost, "parse (a.lua:1)");
  CHECK(parse.own_bytes == Approx(70));
  CHECK(parse.total_bytes == Approx(80));  // a stack counts once, however often the function is on it
  CHECK(parse.own_time == Approx(17.5));
  CHECK(parse.total_time == Approx(20));
  CHECK(row_of(cost, "main (a.lua:1)").total_time == Approx(25));
}

TEST_CASE("a process causes the work of its own collector only", "[unit]") {
  const ThreadInfo one = {1, "lua", 1, "lua"}, two = {2, "lua", 2, "lua"}, three = {3, "lua", 3, "lua"};
  Profile time, bytes = of_bytes();
  add_samples(time, one, VmState::collecting, 60);
  add_samples(time, two, VmState::interpreting, 20);
  add_samples(time, three, VmState::collecting, 20);
  add_bytes(bytes, one, {"a"}, 3000);
  add_bytes(bytes, one, {"b"}, 1000);
  add_bytes(bytes, two, {"b"}, 96000);
  const CollectorCost cost = collector_cost(time, bytes, By::samples);
  CHECK(cost.collecting == Approx(80));
  CHECK(cost.without_site == Approx(20));
  CHECK(sum_of_own(cost) + cost.without_site == Approx(cost.collecting));
  CHECK(row_of(cost, "a (a.lua:1)").own_time == Approx(45));
  CHECK(row_of(cost, "b (a.lua:1)").own_time == Approx(15));
  CHECK(row_of(cost, "b (a.lua:1)").own_bytes == Approx(97));
}

TEST_CASE("without samples there is nothing to divide", "[unit]") {
  const ThreadInfo thread = {1, "lua", 1, "lua"};
  Profile time, bytes = of_bytes();
  CHECK(collector_cost(time, bytes, By::samples).rows.empty());
  add_bytes(bytes, thread, {"a"}, 3000);
  const CollectorCost none = collector_cost(time, bytes, By::samples);
  CHECK(none.collecting == 0);
  CHECK(row_of(none, "a (a.lua:1)").own_time == 0);
  CHECK(row_of(none, "a (a.lua:1)").own_bytes == Approx(100));
}

TEST_CASE("the table of what the collector costs", "[unit]") {
  const ThreadInfo thread = {1, "lua", 1, "lua"};
  Profile time, bytes = of_bytes();
  add_samples(time, thread, VmState::interpreting, 300);
  add_samples(time, thread, VmState::collecting, 100);
  add_bytes(bytes, thread, {"main", "parse"}, 800);
  add_bytes(bytes, thread, {"main", "trim"}, 200);
  CHECK(collector_text(collector_cost(time, bytes, By::samples), 2) ==
        "The garbage collector takes 25.0 % of the time (±4.2 by chance, 95 %). Who causes that, by bytes allocated:\n"
        "   %Own  %Total  %OwnBytes  %TotalBytes  Function\n"
        "   20.0    20.0       80.0         80.0  parse (a.lua:1)\n"
        "    5.0     5.0       20.0         20.0  trim (a.lua:1)\n"
        "                                         1 more\n");
}

}  // namespace luaspy::collector_cost_test
