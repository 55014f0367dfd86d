// luaspy top: the stack below the table with its source lines, and the file that the key o writes.

#include <fmt/format.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "terminal.h"

namespace luaspy::live::top_file_test {
namespace {

void type_name(Terminal& terminal, const std::string& name) {
  terminal.press("o");
  terminal.await_text("write a profile to: ");
  for (int i = 0; i < 40; ++i) terminal.press("BSpace");
  for (const char letter : name) terminal.press(std::string(1, letter));
  terminal.press("Enter");
}

}  // namespace

TEST_CASE("top writes what it has seen", "[top]") {
  const Busy busy;
  Terminal terminal(100, 30);
  terminal.type(busy.top() + "; echo sta''tus $?");
  terminal.await_text("hot (");
  terminal.await_match(" ([3-9]|[0-9]{2,})\\.[0-9]+s\n");  // long enough for some dozens of samples
  terminal.press("o");
  const std::string name = fmt::format("luaspy-lua5.4-{}.html", busy.running.pid());
  terminal.await_text("write a profile to: " + name + "_");
  terminal.press("Enter");
  terminal.await_text("written: " + name);
  terminal.press("o");
  terminal.await_text(fmt::format("luaspy-lua5.4-{}-2.html_", busy.running.pid()));  // the first one is kept
  for (int i = 0; i < 4; ++i) terminal.press("BSpace");
  terminal.press("x"), terminal.press("Enter");
  terminal.await_text("no format has the ending .x");
  type_name(terminal, "a.folded");
  terminal.await_text("written: a.folded");
  terminal.press("v");
  terminal.await_text("Lua only");
  type_name(terminal, "b.folded");
  terminal.await_text("written: b.folded");
  terminal.press("q");
  const std::string screen = terminal.await_text("status 0");
  CHECK(screen.find("luaspy: written: " + name) != std::string::npos);
  CHECK(screen.find("next: flamegraph.pl a.folded") != std::string::npos);
  CHECK(read_file(terminal.folder.path(name)).find("hot (") != std::string::npos);
  std::int64_t hot = 0, all = 0;
  for (const FoldedStack& stack : parse_folded(read_file(terminal.folder.path("a.folded")))) {
    all += stack.count;
    if (stack.frames.back().starts_with("hot (")) hot += stack.count;
  }
  REQUIRE(all > 0);
  const double share = static_cast<double>(hot) / static_cast<double>(all);
  CHECK(share > 0.3);  // 0.7
  CHECK(share < 1);
  // What the screen shows.
  CHECK(read_file(terminal.folder.path("a.folded")).find("main (lua5.4)") != std::string::npos);
  const std::string lua_only = read_file(terminal.folder.path("b.folded"));
  CHECK(lua_only.find("main (lua5.4)") == std::string::npos);
  CHECK(lua_only.find("hot (") != std::string::npos);
}

TEST_CASE("top does not wait for a pipe's reader", "[top]") {
  const Busy busy;
  Terminal terminal(100, 30);
  REQUIRE(::mkfifo(terminal.folder.path("p.folded").c_str(), 0600) == 0);
  terminal.type(busy.top() + "; echo sta''tus $?");
  terminal.await_text("hot (");
  type_name(terminal, "p.folded");
  terminal.await_text("That is not a file.");
  terminal.press("q");
  terminal.await_text("status 0");
}

TEST_CASE("top names the program that a command has become", "[top]") {
  Terminal terminal(100, 30);
  const std::string lua = joined(target(lua54).command), script = terminal.folder.write("busy.lua", hot_and_cold);
  terminal.type(fmt::format("{} top -- sh -c 'exec {} {} go'", luaspy_program, lua, script));
  terminal.await_text("hot (");
  terminal.press("o");
  terminal.await_match("write a profile to: luaspy-lua5\\.4-[0-9]+\\.html_");
}

TEST_CASE("top's stack stands still while the display is paused, and says if a file has changed", "[top]") {
  const Folder folder;
  // It calls the other function once there is a file.
  const std::string script = folder.write("phases.lua",
                                          "local function work() for i = 1, 1e6 do end end\n"
                                          "local function first() repeat work() until io.open(arg[1]) end\n"
                                          "local function second() io.open(arg[2], 'w') repeat work() until false end\n"
                                          "print 'READY' io.stdout:flush()\n"
                                          "first() second()\n");
  const std::string go = folder.path("go"), there = folder.path("there");
  Running running(target(lua54).command + Words{script, go, there});
  running.read_until("READY");
  Terminal terminal(100, 30);
  terminal.type(fmt::format("{} top --max-stopped 100 --pid {}", luaspy_program, running.pid()));
  terminal.await_text("first (");
  terminal.press("2"), terminal.press("Home");  // main
  terminal.press("d");
  terminal.await_match("innermost call first[^$]*> local function first");
  terminal.press("p");
  terminal.await_text("paused");
  folder.write("go", "");
  running.await("the other phase", [&] { return std::filesystem::exists(there); });
  terminal.press("w"), terminal.press("w");  // drawn again
  CHECK(terminal.screen().find("second (") == std::string::npos);
  CHECK(terminal.screen().find("> local function first") != std::string::npos);
  terminal.press("p");
  terminal.await_text("> local function second");
  CHECK(terminal.screen().find("has changed") == std::string::npos);

  folder.write("phases.lua", "-- new\n" + read_file(script));
  terminal.press("q");
  terminal.await_text("$");
  terminal.type(fmt::format("clear; {} top --max-stopped 100 --pid {}", luaspy_program, running.pid()));
  terminal.await_text("%Own");
  terminal.press("2"), terminal.press("Home"), terminal.press("d");
  terminal.await_text("(the file has changed since the process started)");
}

}  // namespace luaspy::live::top_file_test
