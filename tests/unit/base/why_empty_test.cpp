#include "base/why_empty.h"

#include <catch2/catch.hpp>

namespace luaspy::why_empty_test {
namespace {

EmptyFacts facts(std::int64_t asleep, std::int64_t waiting, std::int64_t late, double cpu_s) {
  EmptyFacts facts;
  facts.seconds = 3;
  facts.asleep = asleep;
  facts.waiting = waiting;
  facts.losses[static_cast<std::size_t>(Loss::late)] = late;
  facts.cpu_ns = static_cast<std::int64_t>(cpu_s * 1e9);
  return facts;
}

}  // namespace

TEST_CASE("that a target slept is said only if it was seen asleep", "[unit]") {
  CHECK(why_empty(facts(300, 0, 0, 0)) == "its threads slept at all 300 looks");
  CHECK(why_empty(facts(1, 0, 0, 0.001)) == "its threads slept at the only look");
  CHECK(why_empty(facts(300, 0, 0, 0.4)) ==
        "its threads slept at all 300 looks, though they used 0.4 s of CPU time: a higher --rate may see more");
  for (const EmptyFacts& of : {facts(0, 0, 300, 2.9), facts(0, 0, 0, 2.9), facts(0, 300, 0, 0), facts(0, 0, 0, 0)})
    CHECK(why_empty(of).find("slept") == std::string::npos);
}

TEST_CASE("why a recording is empty is what was counted", "[unit]") {
  CHECK(why_empty(facts(0, 0, 0, 2.9)) ==
        "luaspy did not get to look at any of its threads in 3.0 s, in which they used 2.9 s of CPU time");
  CHECK(why_empty(facts(0, 0, 0, 0)) == "luaspy did not get to look at any of its threads in 3.0 s");
  CHECK(why_empty(facts(2, 8, 290, 2.9)) ==
        "of 300 looks, 2 found a thread asleep, 8 found one waiting for a CPU, 290 gave nothing (290 late ticks); its "
        "threads used 2.9 s of CPU time meanwhile");
  EmptyFacts refused;
  refused.seconds = 1;
  refused.losses[static_cast<std::size_t>(Loss::refused)] = 1;
  CHECK(why_empty(refused) == "of 1 look, 1 gave nothing (1 refused); its threads used 0.000 s of CPU time meanwhile");
}

}  // namespace luaspy::why_empty_test
