#include <catch2/catch.hpp>

#include "attach/process.h"

namespace luaspy::thread_state_test {

using Kind = ThreadState::Kind;

TEST_CASE("a thread that was woken after a stop runs, before its CPU has taken it over") {
  // What /proc/PID/task/TID/syscall and stat say of one that works, some µs after luaspy has let it go.
  CHECK(state_of("-1 0x7ffd2d3c8a70 0x55d0c1b3a4f6\n", 'R').kind == Kind::running);
}

TEST_CASE("a thread that waits for a page sleeps, and so does one that another tracer holds") {
  for (const char letter : {'D', 'S', 't'}) {
    const ThreadState state = state_of("-1 0x7ffd2d3c8a70 0x55d0c1b3a4f6\n", letter);
    CHECK(state.kind == Kind::sleeping);
    CHECK(state.system_call == -1);
    CHECK(state.sp == 0x7ffd2d3c8a70);
    CHECK(state.pc == 0x55d0c1b3a4f6);
  }
}

TEST_CASE("a thread in a system call sleeps in it, and one that is over has ended") {
  const ThreadState state = state_of("230 0x0 0x0 0x7ffc0f3d6b10 0x0 0x0 0x0 0x7ffc0f3d6ae8 0x7f2a1c4d5f17\n", '?');
  CHECK(state.kind == Kind::sleeping);
  CHECK(state.system_call == 230);
  CHECK(state.arguments[2] == 0x7ffc0f3d6b10);
  CHECK(state.pc == 0x7f2a1c4d5f17);
  CHECK(state_of("running\n", '?').kind == Kind::running);
  CHECK(state_of("-1 0x0 0x0\n", 'Z').kind == Kind::ended);
  CHECK(state_of("-1 0x0 0x0\n", 'S').kind == Kind::sleeping);
}

TEST_CASE("without that file, the letter says whether a thread runs") {
  CHECK(state_of("", 'R').kind == Kind::running);
  CHECK(state_of("", 'S').kind == Kind::sleeping);
  CHECK(state_of("", 'Z').kind == Kind::ended);
  CHECK(state_of("", '?').kind == Kind::ended);
}

}  // namespace luaspy::thread_state_test
