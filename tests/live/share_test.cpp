// Two functions share the CPU by the program's own clock: their shares of the samples must agree
// with it within the sampling error, and the summary at the end must account for every tick.

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <regex>

#include "support/harness.h"

namespace luaspy::live::live_share_test {
namespace {

// A number of the summary. Fails the test if the summary does not have it.
double number(const std::string& summary, const std::string& pattern) {
  std::smatch match;
  INFO(summary);
  INFO("no match of: " << pattern);
  REQUIRE(std::regex_search(summary, match, std::regex(pattern)));
  return std::stod(match[1]);
}

std::int64_t optional_number(const std::string& summary, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(summary, match, std::regex(pattern)) ? std::stoll(match[1]) : 0;
}

// ticks is printed as a rate with one digit and a number of seconds with one digit, which limits
// the precision of their product.
void check_summary(const std::string& summary, std::int64_t samples_written, double asked_rate) {
  const double seconds = number(summary, "([0-9.]+) s, [0-9]+ samples of "),
               rate = number(summary, "looked ([0-9.]+) times a second");
  const auto samples = static_cast<std::int64_t>(number(summary, " s, ([0-9]+) samples? of 1 thread;"));
  const auto idle = optional_number(summary, "asleep: at ([0-9]+) ticks?");
  std::int64_t lost = 0;
  for (const char* name : {"not stopped in time", "refused", "thread ended", "stack unreadable",
                           "woke while being read", "on another CPU", "not read whole"})
    lost += optional_number(summary, fmt::format("([0-9]+) {}", name));
  const std::int64_t waiting = optional_number(summary, "waited for a CPU at ([0-9]+) ticks"),
                     late = optional_number(summary, "([0-9]+) late ticks");
  INFO(summary);
  CHECK(samples == samples_written);
  const double ticks = rate * seconds, uncertain = 0.051 * rate + 0.051 * seconds + 1;
  // The thread of luaspy that sees the program's end looks every 20 ms, and has to wait for a CPU like
  // the program, while others go on making ticks. It is not known how long it waited at the end; but no
  // longer than all waits of the recording together.
  const double waited_s = static_cast<double>(waiting + late) / rate, end = std::min(0.025 + waited_s, 0.1) * rate;
  // Where luaspy had no CPU it passed over ticks: they are not looks, but the thread slept or waited
  // at them all the same. A tick that is late on one CPU may have been made on another one.
  CHECK(static_cast<double>(samples + idle + lost + waiting) <= asked_rate * seconds + uncertain);
  CHECK(static_cast<double>(samples + idle + lost + waiting + late) >= ticks - uncertain - end);
}

struct Share {
  Words command;
  int percent;
  const char* work;
  const char* rate;
  std::string library = {};  // its c_payload is called only by heavy
};

void check(const Share& share) {
  Words command = share.command;
  const char* const seconds = std::string_view(share.rate) == "100" ? "4" : "1";
  command.insert(command.end(),
                 {workload("share.lua"), std::to_string(share.percent), seconds, share.work, share.library});
  Running running(command);
  running.read_until("READY");
  // No duration: the recording ends with the program, so that both cover the same time. No bound on
  // stops either: on a busy machine they are long, and few samples would be left.
  const Finished recorded = luaspy({"record", "-f", "folded", "-o", "-", "-r", share.rate, "--max-stopped", "100",
                                    "--pid", std::to_string(running.pid())});
  CHECK(running.wait() == 0);
  const std::string said = running.rest();
  INFO(Catch::StringMaker<Words>::convert(command)
       << " at " << share.rate << " Hz; the program says: " << said << recorded.err);
  REQUIRE(recorded.status == 0);
  const double heavy_seconds = number(said, "heavy ([0-9.]+)"), light_seconds = number(said, "light ([0-9.]+)");

  const std::string heavy_place = place("share.lua", "function heavy"),
                    light_place = place("share.lua", "function light");
  std::int64_t heavy = 0, light = 0, both = 0, all = 0, payload = 0, payload_elsewhere = 0;
  for (const FoldedStack& stack : parse_folded(recorded.out)) {
    const auto has = [&](const std::string& ending) {
      return std::ranges::any_of(stack.frames, [&](const std::string& frame) { return frame.ends_with(ending); });
    };
    const bool in_heavy = has(heavy_place), in_light = has(light_place);
    all += stack.count;
    heavy += in_heavy ? stack.count : 0;
    light += in_light ? stack.count : 0;
    both += in_heavy && in_light ? stack.count : 0;
    if (stack.frames.back().starts_with("c_payload ")) (in_heavy ? payload : payload_elsewhere) += stack.count;
  }
  const double samples = static_cast<double>(heavy + light);
  CHECK(both == 0);
  REQUIRE(samples >= 100);
  CHECK(samples >= 0.25 * static_cast<double>(all));  // the rest is the loop's os.clock, a system call, slow on a busy
                                                      // machine
  const double expected = heavy_seconds / (heavy_seconds + light_seconds);
  CHECK(std::abs(expected - share.percent / 100.0) < 0.05);  // else the workload is broken
  // Ticks come at random times, so their variance is at most binomial: 5 sigma, plus 1 % for the ends
  // of the run.
  CHECK(std::abs(static_cast<double>(heavy) / samples - expected) <
        5 * std::sqrt(expected * (1 - expected) / samples) + 0.01);
  check_summary(recorded.err, all, std::stod(share.rate));
  if (share.library.empty()) return;
  CHECK(payload_elsewhere == 0);
  CHECK(static_cast<double>(payload) >= 0.9 * static_cast<double>(heavy));  // the rest of heavy only calls it
}

}  // namespace

TEST_CASE("shares of samples are shares of time, in Debian's Luas", "[share][luas][smoke]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"debian-lua5.1-bookworm", "debian-lua5.2-bookworm", "debian-lua5.3-bookworm",
                           "debian-lua5.4-bookworm", "debian-lua5.5-sid"})));
  check({target(name).command, 75, "arith", "100"});
  check({target(name).command, 50, "string", std::string_view(name).starts_with("debian-lua5.4") ? "5000" : "1000"});
  check({target(name).command, 75, "coroutine", "1000"});
  check({target(name).command, 75, "c", "1000"});
  check({target(name).command, 50, "table", "1000"});
}

TEST_CASE("shares of samples are shares of time, in builds of every shape", "[share][all][luas]") {
  const std::string version = GENERATE_COPY(from_range(prepared({"5.1.5", "5.4.7"})));
  for (const char* const shape : {"O0", "lto", "noehframe", "static", "clang", "nosections"})
    check({target(fmt::format("lua-{}-{}", version, shape)).command, 75, "arith", "1000"});
}

TEST_CASE("shares of samples are shares of time, in LuaJIT", "[luajit_share][luas][smoke]") {
  const std::string name = GENERATE_COPY(from_range(prepared({"debian-luajit-bookworm", "luajit-2.1.newest-gc32"})));
  const Words command = command_of(target(name), GENERATE(Jit::off, Jit::on));
  check({command, 75, "arith", "100"});
  check({command, 50, "string", "5000"});
  check({command, 75, "coroutine", "1000"});
  check({command, 75, "c", "1000"});
  check({command, 50, "table", "1000"});
}

TEST_CASE("a C function called through LuaJIT's FFI has its share, and the same in Lua has its own",
          "[luajit_share][luas]") {
  const std::string name = GENERATE_COPY(from_range(prepared(
      {"debian-luajit-bookworm", "luajit-2.0.20260330-gc32", "luajit-2.1.20170501-gc32", "luajit-2.1.newest-gc32"})));
  const Jit jit = GENERATE(Jit::off, Jit::on);
  const Folder folder;
  check({command_of(target(name), jit), 60, "ffi", "1000", compile_shared(folder, "payload")});
}

}  // namespace luaspy::live::live_share_test
