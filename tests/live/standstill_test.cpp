// Nothing of a target moves in a standstill, and all of it after.

#include "attach/standstill.h"

#include <array>
#include <catch2/catch.hpp>

#include "harness.h"

namespace luaspy::live {

TEST_CASE("nothing moves in a standstill", "[family]") {
  const Folder folder;
  Running program({compile(folder, "counters")});
  const std::vector<std::string> lines = program.read_until("READY");
  REQUIRE(lines.size() == 1);
  const Address counters = std::stoull(lines[0], nullptr, 16);
  Result<Process> process = Process::open(program.pid());
  REQUIRE(process);
  Target target(std::move(*process), std::chrono::seconds(2));
  using Counts = std::array<std::uint64_t, 5>;
  const auto counts = [&] { return target.memory().get<Counts>(counters).value(); };
  Counts last{};
  int whole = 0;
  for (int round = 0; round < 50; ++round) {
    Standstill standstill(target);
    CHECK(standstill.members().size() >= 6);
    const Counts before = counts();
    bool moved = false;
    for (int i = 0; i < 200; ++i) moved |= counts() != before;
    // A thread may be caught in the making of another one, asleep: then it can wake, and this is told.
    const bool undisturbed = standstill.undisturbed();
    CHECK((!moved || !undisturbed));
    whole += undisturbed;
    CHECK(standstill.resume().count() > 0);
    program.await("it counts on", [&] { return counts() != before; });
    CHECK(before != last);
    last = before;
  }
  CHECK(whole >= 25);
}

}  // namespace luaspy::live
