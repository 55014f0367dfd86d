#include "sampling/cpu_clock.h"

#include <unistd.h>

#include <catch2/catch.hpp>

namespace luaspy::cpu_clock_test {
namespace {

// Numbers that no process has (kernel/pid.c, PID_MAX_LIMIT): their clocks cannot be read.
constexpr pid_t first_process = (1 << 22) + 1, one = first_process + 1, without_lua = first_process + 2;

}  // namespace

TEST_CASE("CPU time by what a process runs, whenever that is known", "[unit]") {
  CpuClock clock;
  clock.begin(first_process, true);
  clock.born(one);
  clock.add_ended(one, 30);  // a thread
  CHECK(clock.use(first_process, true).unknown_ns == 30);
  clock.runs_lua(one);
  clock.add_ended(one, 12);
  clock.born(without_lua);
  clock.runs_other(without_lua);
  clock.add_ended(without_lua, 100);
  CpuUse use = clock.use(first_process, true);
  CHECK(use.lua_ns == 42);
  CHECK(use.other_ns == 100);
  CHECK(use.unknown_ns == 0);
  CHECK(use.system_share == -1);  // nothing was read
  // A shell that has run Lua before stays what it was.
  clock.runs_other(one);
  CHECK(clock.use(first_process, true).lua_ns == 42);
}

TEST_CASE("a process number that is used again is another process", "[unit]") {
  CpuClock clock;
  clock.born(one);
  clock.runs_lua(one);
  clock.add_ended(one, 42);
  clock.born(one);
  clock.add_ended(one, 8);
  CpuUse use = clock.use(first_process, false);
  CHECK(use.lua_ns == 42);
  CHECK(use.unknown_ns == 8);
  for (pid_t pid = one; pid < one + (1 << 15); ++pid) clock.born(pid);  // more than it remembers
  use = clock.use(first_process, false);
  CHECK(use.lua_ns == 42);
  CHECK(use.unknown_ns == 8);
}

TEST_CASE("a process that lives is not counted twice, however many have ended", "[unit]") {
  const auto own_ns = [] { return cpu_time_of(::getpid())->ns; };
  const std::int64_t before_ns = own_ns();
  CpuClock clock;
  clock.begin(::getpid(), true);
  clock.read(::getpid());
  for (pid_t pid = one; pid < one + (1 << 15); ++pid) clock.born(pid);  // more than it remembers
  clock.read(::getpid());
  const CpuUse use = clock.use(::getpid(), false);
  CHECK(use.lua_ns > 0);
  CHECK(use.lua_ns + use.unknown_ns <= own_ns() - before_ns);
}

// The kernel counts it in ticks of 10 ms: of processes of 100 ms that spend 7 % in system calls, it says 0.
TEST_CASE("system time that is lost in rounding is not 0", "[unit]") {
  constexpr std::int64_t ms = 1'000'000;
  CpuClock clock;
  for (pid_t pid = one; pid < one + 10; ++pid) {
    clock.born(pid);
    clock.runs_lua(pid);
    clock.record(pid, {.ns = 98 * ms, .user_ns = 90 * ms, .system_ns = 0});
    clock.read(pid);  // it is gone: the last reading stays
  }
  CHECK(clock.use(first_process, true).system_share == Approx(10.0 / 98));
  for (pid_t pid = one; pid < one + 10; ++pid) clock.born(pid);  // others have their numbers now
  CHECK(clock.use(first_process, true).system_share == Approx(10.0 / 98));
  CpuClock of_one;
  of_one.born(one);
  of_one.runs_lua(one);
  of_one.record(one, {.ns = 10'000 * ms, .user_ns = 9700 * ms, .system_ns = 300 * ms});
  CHECK(of_one.use(first_process, false).system_share == Approx(0.031));
  // Nothing was read of what has run most of the time.
  of_one.born(without_lua);
  of_one.runs_lua(without_lua);
  of_one.add_ended(without_lua, 9000 * ms);
  CHECK(of_one.use(first_process, false).system_share == -1);
}

TEST_CASE("what was used between two readings", "[unit]") {
  CpuUse sum;
  sum += CpuUse{50, 40, 30, 0.5} - CpuUse{20, 30, 25, 0.1};
  CHECK(sum.lua_ns == 30);
  CHECK(sum.other_ns == 10);
  CHECK(sum.unknown_ns == 5);
}

TEST_CASE("the clock of a living process is read", "[unit]") {
  CpuClock clock;
  clock.begin(::getpid(), true);
  volatile int sink = 0;
  do {
    for (int i = 0; i < 100'000; ++i) sink = i;
    clock.read(::getpid());
  } while (clock.use(::getpid(), true).lua_ns == 0);
  CHECK(sink != 0);
  CHECK(clock.use(::getpid(), true).unknown_ns == 0);
}

}  // namespace luaspy::cpu_clock_test
