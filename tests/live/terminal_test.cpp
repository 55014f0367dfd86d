// What the commands write to a terminal.

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "terminal.h"

namespace luaspy::live::terminal_test {

TEST_CASE("progress is one line that goes away, however narrow the terminal is", "[record]") {
  const Busy busy;
  for (const int width : {100, 34}) {
    Terminal terminal(width, 30);
    terminal.type(fmt::format("{} record --pid {} -d 2 -o a.folded", luaspy_program, busy.running.pid()));
    terminal.await_text("[###");
    terminal.await_text("next: ");
    const std::string screen = terminal.screen();
    INFO(screen);
    CHECK(screen.find("[##") == std::string::npos);
    CHECK(screen.find(" left") == std::string::npos);
  }
}

TEST_CASE("a dump on a terminal has no invisible characters", "[dump]") {
  const Folder folder;
  const std::string script = folder.write(
      "hidden.lua",
      "local function f(hidden) io.write('READY\\n') io.flush() repeat until false end f('a\\226\\128\\174b')\n");
  Running running(target(lua54).command + Words{script});
  running.read_until("READY");
  Terminal terminal(100, 40);
  terminal.type(fmt::format("{} dump --locals --pid {}", luaspy_program, running.pid()));
  terminal.await_text("hidden = \"a\\u202eb\"");
}

}  // namespace luaspy::live::terminal_test
