#include "allocations/byte_gate.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace luaspy::byte_gate_test {

TEST_CASE("what passes a gate is chosen by bytes, however many pass at once", "[unit]") {
  ByteGate gate(1);
  CHECK_FALSE(gate.is_open());
  gate.set_interval(1000);
  REQUIRE(gate.is_open());
  // As many bytes in small steps as in one large one for every ten of them.
  std::int64_t of_small = 0, of_large = 0;
  for (int i = 0; i < 100'000; ++i) {
    of_small += gate.pass(100);
    if (i % 10 == 0) of_large += gate.pass(1000);
  }
  constexpr double expected = 10'000, sigmas = 5;
  CHECK(std::abs(static_cast<double>(of_small) - expected) < sigmas * std::sqrt(expected));
  CHECK(std::abs(static_cast<double>(of_large) - expected) < sigmas * std::sqrt(expected));
}

TEST_CASE("a gate that changes its interval still lets through one in so many bytes", "[unit]") {
  ByteGate gate(2);
  double chosen_bytes = 0, bytes = 0;
  for (int i = 0; i < 200'000; ++i) {
    gate.set_interval(i % 200 < 100 ? 500 : 5000);
    const double passed = i % 3 == 0 ? 700 : 10;
    chosen_bytes += gate.pass(passed) * gate.interval();
    bytes += passed;
  }
  CHECK(chosen_bytes == Approx(bytes).epsilon(0.05));
}

TEST_CASE("much that passes at once neither hangs a gate nor counts against what follows", "[unit]") {
  ByteGate gate(3);
  gate.set_interval(1);
  CHECK(gate.pass(1e12) >= 1000);
  gate.set_interval(1000);
  int chosen = 0;
  for (int i = 0; i < 1000; ++i) chosen += gate.pass(1);
  CHECK(chosen < 10);
}

}  // namespace luaspy::byte_gate_test
