#include "stack/core_reach.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>

#include "arch/machine.h"

namespace luaspy::core_reach_test {
namespace {

// Functions of 0x100 bytes each, at so many starts, and whom they call by x86-64's call rel32.
struct Code {
  std::map<Address, std::vector<Address>> calls;
  std::vector<Unwinder::Range> functions() const {
    std::vector<Unwinder::Range> all;
    for (const auto& [start, targets] : calls) all.push_back({start, start + 0x100});
    return all;
  }
  std::vector<std::byte> read(const Unwinder::Range& function) const {
    std::vector<std::byte> bytes(0x100, std::byte{0x90});
    std::size_t at = 8;
    for (const Address target : calls.at(function.start)) {
      const auto distance = static_cast<std::int32_t>(target - (function.start + at + 5));
      bytes[at] = std::byte{0xe8};
      std::memcpy(&bytes[at + 1], &distance, sizeof distance);
      at += 5;
    }
    return bytes;
  }
};

}  // namespace

TEST_CASE("what Lua's own code calls directly is its own, and nothing that is far, a host's, or not reached",
          "[unit]") {
  // The host's main and a function of it; the collector, reached by way of each other; the API, which is known; a
  // function behind it; one that is too far away.
  const Address host = 0x1000, main = 0x1100, sweep = 0x4000, mark = 0x5000, api = 0x8000, behind = 0x8300,
                named_host = 0x8500, far = 0x40000;
  const Code code = {{{host, {}},
                      {main, {host, api}},
                      {sweep, {}},
                      {mark, {sweep}},
                      {api, {mark, behind, named_host, far}},
                      {behind, {}},
                      {named_host, {}},
                      {far, {}}}};
  const std::vector<Unwinder::Range> functions = code.functions();
  const std::vector<Unwinder::Range> own = extended(
      {{api, api + 0x100}},
      {find_machine("x86_64")->code, functions, [&](const Unwinder::Range& function) { return code.read(function); },
       [&](Address function) { return function != named_host; }});
  REQUIRE(own.size() == 1);
  CHECK(own[0].start == sweep);
  CHECK(own[0].end == behind + 0x100);
}

}  // namespace luaspy::core_reach_test
