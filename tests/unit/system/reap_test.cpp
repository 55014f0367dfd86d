#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

#include "system/calls.h"

namespace luaspy::reap_test {

// The stop is reported to all threads of the tracer's process, and the end, too.
TEST_CASE("an end is taken from a thread's tracer, a stop is not", "[unit]") {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  REQUIRE(child > 0);
  REQUIRE(::ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0);
  REQUIRE(::ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr) == 0);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOWAIT | __WALL) == 0);
  bool ended = true;
  std::thread([&] { ended = system::reap_if_ended(child); }).join();
  CHECK_FALSE(ended);
  CHECK(::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | __WALL) == 0);
  CHECK(info.si_pid == child);  // the report is still there
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT | __WALL) == 0);
  std::thread([&] { ended = system::reap_if_ended(child); }).join();
  CHECK(ended);
}

}  // namespace luaspy::reap_test
