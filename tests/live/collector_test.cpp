// The collector, a finalizer that it has called, and Lua must be distinguished in every sample, and
// their shares must agree with the program's own clock. In PUC Luas without symbols the collector
// is found by its machine code.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>

#include "support/harness.h"

namespace luaspy::live::live_collector_test {
namespace {

struct Turns {
  std::string finalizer = place("collector.lua", "local function finalizer()"),
              collect = place("collector.lua", "local function collect"),
              steps = place("collector.lua", "local function steps"),
              finalize = place("collector.lua", "local function finalize()"),
              allocate = place("collector.lua", "local function allocate"),
              idle = place("collector.lua", "local function idle");
};

struct Counts {
  std::int64_t collecting = 0, counted = 0;  // in the turns of known length, except in the clock
  std::int64_t finalizers = 0, finalizers_wrong = 0;
  std::int64_t forced = 0, forced_missed = 0;  // collectgarbage is the innermost call, and is not calling a finalizer
  std::int64_t idle_wrong = 0, automatic = 0;
};

Counts count(const std::vector<FoldedStack>& stacks) {
  const Turns turns;
  Counts counts;
  for (const FoldedStack& stack : stacks) {
    const auto has = [&](const std::string& ending) {
      return std::ranges::any_of(stack.frames, [&](const std::string& frame) { return frame.ends_with(ending); });
    };
    const std::int64_t collecting = stack.frames.front() == "[garbage collector]" ? stack.count : 0;
    if (has(turns.allocate)) {
      counts.automatic += collecting;
      continue;
    }
    const bool timed = has(turns.collect) || has(turns.finalize) || has(turns.idle);
    if (timed && !has("os.clock [C]")) counts.counted += stack.count, counts.collecting += collecting;
    if (has(turns.finalizer)) counts.finalizers += stack.count, counts.finalizers_wrong += collecting;
    else if (has(turns.idle)) counts.idle_wrong += collecting;
    else if ((has(turns.collect) || has(turns.steps)) && has("collectgarbage [C]"))
      counts.forced += stack.count, counts.forced_missed += stack.count - collecting;
  }
  return counts;
}

}  // namespace

TEST_CASE("the collector's work is told from Lua's, and from its finalizers'", "[collector][luas]") {
  const std::string name = GENERATE_COPY(from_range(
      prepared({"debian-lua5.1-bookworm", "debian-lua5.2-bookworm", "debian-lua5.3-bookworm", "debian-lua5.4-bookworm",
                "debian-lua5.5-sid", "debian-texlua-bookworm", "lua-5.1.5-noehframe", "lua-5.3.6-static",
                "lua-5.4.7-O0", "lua-5.4.7-lto", "lua-5.5.1-O3"})));
  Words command = target(name).command;
  command.insert(command.end(), {workload("collector.lua"), "0.6"});
  Running running(command);
  running.read_until("READY");
  const Finished recorded = luaspy({"record", "-f", "folded", "--vmstate", "-o", "-", "-r", "1000", "--max-stopped",
                                    "100", "--pid", std::to_string(running.pid())});
  CHECK(running.wait() == 0);
  const std::string said = running.rest();
  const Counts counts = count(parse_folded(recorded.out));
  INFO(name << ", which says: " << said << recorded.err);
  REQUIRE(recorded.status == 0);
  double collecting = 0, other = 0;
  REQUIRE(std::sscanf(said.c_str(), "collecting %lf other %lf", &collecting, &other) == 2);
  REQUIRE(counts.forced >= 20);
  REQUIRE(counts.finalizers >= 20);
  CHECK(counts.forced_missed <= 3 + counts.forced / 20);         // collectgarbage itself; there may be few samples
  CHECK(counts.finalizers_wrong <= 3 + counts.finalizers / 20);  // the way to the finalizer
  CHECK(counts.idle_wrong == 0);
  CHECK(counts.automatic > 0);
  const double expected = collecting / (collecting + other), samples = static_cast<double>(counts.counted);
  // Binomial: 5 sigma, plus 5 % for the ends of the run, and because turns are longer than a tick.
  CHECK(std::abs(static_cast<double>(counts.collecting) / samples - expected) <
        5 * std::sqrt(expected * (1 - expected) / samples) + 0.05);
}

}  // namespace luaspy::live::live_collector_test
