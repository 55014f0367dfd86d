#include "sampling/tick_gate.h"

#include <catch2/catch.hpp>

namespace luaspy::tick_gate_test {

TEST_CASE("a tick is made by all CPU samplers, or left out by all, and counted once", "[unit]") {
  using namespace std::chrono_literals;
  const system::Clock::time_point start{1h};
  TickGate gate(0.1, start);
  CHECK(gate.begin(1, start + 10ms));
  CHECK(gate.begin(1, start + 11ms));  // another CPU sampler
  gate.add_stop(7, 100'000'000);       // ten times as long as until the next one
  CHECK_FALSE(gate.begin(2, start + 20ms));
  CHECK_FALSE(gate.begin(2, start + 21ms));
  CHECK(gate.made() == 1);
  CHECK(gate.skipped() == 1);
  std::int64_t number = 2;
  while (!gate.begin(++number, start + number * 10ms)) {
  }
  CHECK(number > 3);
  CHECK(number <= 101);              // 100 ms are a tenth of 1 s
  CHECK(gate.begin(1, start + 2s));  // a CPU sampler that is late makes the last one
  CHECK(gate.made() == 2);
}

}  // namespace luaspy::tick_gate_test
