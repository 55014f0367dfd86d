#include "luastate/running.h"

#include <catch2/catch.hpp>

namespace luaspy::running_test {
namespace {

constexpr Address sp = 0x7000, end = 0x8000;  // of the thread's native frames

void add(Walked& walked, Address L, Address anchor) {
  RunningState& state = walked.states.emplace_back();
  state.activation.L = L;
  state.activation.anchor = anchor;
  state.anchored = anchor != 0;
  walked.parts.push_back({walked.states.size() - 1, anchor});
  walked.running = walked.walked = walked.states.size();
}

std::vector<Address> states_of(const Walked& walked) {
  std::vector<Address> all;
  for (const ActiveState& state : walked.active()) all.push_back(state.L);
  return all;
}

}  // namespace

TEST_CASE("what does not run on a thread is dropped from its states", "[unit]") {
  Walked walked;
  add(walked, 0x100, 0x7100);   // runs
  add(walked, 0x7400, 0x7500);  // a copy on the stack
  add(walked, 0x200, 0);        // may run: nothing protects its call
  add(walked, 0x300, 0x9000);   // on another stack
  add(walked, 0x400, 0x7800);   // runs
  SECTION("the stack ends there") {
    walked.drop_strangers(sp, end, true);
    CHECK(states_of(walked) == std::vector<Address>{0x100, 0x200, 0x400});
    REQUIRE(walked.parts.size() == 3);
    CHECK(walked.parts[0].state == 0);
    CHECK(walked.parts[1].state == 1);
    CHECK(walked.parts[2].state == 2);
    CHECK(walked.parts[2].boundary == 0x7800);
    CHECK(walked.walked == 3);
  }
  SECTION("its end was not reached") {
    walked.drop_strangers(sp, end, false);
    CHECK(states_of(walked) == std::vector<Address>{0x100, 0x200, 0x300, 0x400});
    CHECK(walked.parts.size() == 4);
  }
}

}  // namespace luaspy::running_test
