// Threads that are read without a stop, with the kernel's log of their switches. Where luaspy has
// no access to it, it stops them.

#include <unistd.h>

#include <catch2/catch.hpp>

#include "attach/switch_log.h"
#include "attach/target.h"
#include "support/harness.h"

namespace luaspy::live::switch_log_test {
namespace {

const char* const spinning =
    "local function add(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
    "local function more(n) local s = 1 for i = 1, 3 * n do s = s + i % 5 end return s end\n"
    "print('READY') io.flush()\n"
    "while true do add(5000) more(5000) end\n";

// How often the process went to sleep. A stop counts as that, too.
std::int64_t sleeps_of(const Running& target) { return Thread(target.pid(), target.pid()).voluntary_switches(); }

struct Recorded {
  std::int64_t samples = 0;
  double add = 0;  // % of the samples
};

Recorded record_adding(const Running& target, const Words& more) {
  Words command = {"record",        "-r",  "500",    "-d",    "3",
                   "--max-stopped", "100", "--mode", "lua",   "-f",
                   "folded",        "-o",  "-",      "--pid", std::to_string(target.pid())};
  command.insert(command.end(), more.begin(), more.end());
  const Finished finished = luaspy(command);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  Recorded recorded;
  for (const FoldedStack& stack : parse_folded(finished.out)) {
    recorded.samples += stack.count;
    if (stack.frames.back().starts_with("add (")) recorded.add += static_cast<double>(stack.count);
  }
  recorded.add *= 100.0 / static_cast<double>(recorded.samples);
  return recorded;
}

}  // namespace

TEST_CASE("a thread whose switches the kernel tells is read without a stop, and shows the same", "[record]") {
  const Folder folder;
  Running target(lua({folder.write("spin.lua", spinning)}));
  target.read_until("READY");
  const bool is_allowed = SwitchLog::open(target.pid()) != nullptr;
  CAPTURE(is_allowed);
  // luaspy closes the log of a thread that others switch 1,000 times in half a second, because the
  // log costs more than stops there (log_choice.h), and on a busy machine others may do that. So not each recording
  // has to be without stops. Some are: those of the search for Lua, and of the first looks at a big stack.
  Recorded without;
  std::int64_t stops = 0;
  bool stopped = true;
  for (int tries = 0; tries < 8 && stopped; ++tries) {
    const std::int64_t before = sleeps_of(target);
    without = record_adding(target, {});
    stops = sleeps_of(target) - before;
    stopped = stops >= without.samples / 10;
    if (!is_allowed) break;
  }
  const std::int64_t before = sleeps_of(target);
  const Recorded with = record_adding(target, {"--always-stop"});
  const std::int64_t stops_with = sleeps_of(target) - before;
  REQUIRE((without.samples > 100 && with.samples > 100));
  CHECK(stops_with >= with.samples);
  CAPTURE(stops);
  if (!is_allowed) CHECK(stops >= without.samples);
  else CHECK_FALSE(stopped);
  // A quarter of the time, 25 ± 2.4 of 300 samples.
  CHECK(without.add == Approx(25).margin(10));
  CHECK(with.add == Approx(25).margin(10));
}

TEST_CASE("the log has the registers that a stop finds", "[record]") {
  const Folder folder;
  Running running(lua({folder.write("spin.lua", spinning)}));
  running.read_until("READY");
  const std::unique_ptr<SwitchLog> log = SwitchLog::open(running.pid());
  if (log == nullptr) {
    CHECK(geteuid() != 0);  // a container may also refuse it to root: then this fails
    return;
  }
  Result<Process> process = Process::open(running.pid());
  REQUIRE(process);
  Target target(std::move(*process), std::chrono::seconds(5));
  int compared = 0;
  for (int i = 0; i < 200; ++i) {
    Stop stop(target, running.pid());
    REQUIRE(stop.outcome() == Stop::Outcome::stopped);
    const SwitchLog::Switch lost = log->last();
    REQUIRE(lost.kind == SwitchLog::Switch::Kind::given_up);
    CHECK(lost.at <= system::Clock::now());
    bool at_system_call = true;
    const std::optional<Registers> noted = log->registers(lost, at_system_call);
    REQUIRE(noted);
    CHECK(at_system_call == stop.at_system_call());
    for (unsigned number = 0; number < Registers::most; ++number) {
      INFO("register " << number);
      CHECK((*noted)[number] == stop.registers()[number]);
    }
    CHECK(log->is_last(lost));
    ++compared;
    stop.resume();
    // Only a thread that has run again has a new state.
    running.await("it has a CPU again", [&] { return !log->is_last(lost); });
    CHECK(!log->registers(lost, at_system_call));
  }
  CHECK(compared == 200);
}

}  // namespace luaspy::live::switch_log_test
