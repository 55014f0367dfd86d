// luaspy top in a real terminal: tmux reads the screen and types the keys.

#include <signal.h>

#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <regex>
#include <sstream>

#include "terminal.h"

namespace luaspy::live::live_top_test {
namespace {

// The share of `hot` in both. On a busy machine other processes also take time, so only their ratio
// is reliable; some hundred samples give it within a tenth.
bool is_seven_tenths(double hot, double cold) { return hot / (hot + cold) > 0.52 && hot / (hot + cold) < 0.88; }

int width_of(const std::string& line) {
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

TEST_CASE("top shows the hot function with its share", "[top][smoke]") {
  const char* const name = GENERATE(lua54, luajit);
  INFO(name);
  const Busy busy(name);
  Terminal terminal(100, 30);
  terminal.type(busy.top());
  const std::string screen = terminal.await_match(" (1\\.[6-9]|[2-9]\\.|[0-9]{2,}\\.)[0-9]+s\n");  // enough samples
  INFO(screen);
  CHECK(terminal.is_taken());
  CHECK(screen.find(name == lua54 ? "· Lua 5.4" : "· LuaJIT") != std::string::npos);
  CHECK(screen.find(fmt::format("pid {}", busy.running.pid())) != std::string::npos);
  CHECK(screen.find("1 thread, 1 ran") != std::string::npos);
  CHECK((screen.find("machine code") != std::string::npos) == (name == luajit));
  CHECK((screen.find("GC -") != std::string::npos) == (name == lua54));
  const std::size_t hot_row = screen.find("busy.lua:3)"), cold_row = screen.find("busy.lua:4)");
  REQUIRE(cold_row != std::string::npos);
  CHECK(hot_row < cold_row);
  CHECK(std::regex_search(screen, std::regex("TotalTime.*\n[^\n]*busy.lua:3\\)")));  // nothing is above it
  const double hot = std::stod(line_with(screen, "busy.lua:3)").substr(7)),
               cold = std::stod(line_with(screen, "busy.lua:4)").substr(7));
  CHECK(is_seven_tenths(hot, cold));
  terminal.press("q");
  terminal.await_match("\\$ *\n*$");
  CHECK(terminal.is_as_before());
  CHECK(busy.running.alive());
}

TEST_CASE("top: each key", "[top]") {
  const Busy busy;
  Terminal terminal(100, 30);
  terminal.type(busy.top() + "; echo sta''tus $?");
  terminal.await_text("hot (");
  terminal.press("?");
  terminal.await_text("quit; a program that was running continues");
  terminal.press("x");
  terminal.await_text("hot (");
  terminal.press("/");
  terminal.await_text("filter: _");
  terminal.press("c"), terminal.press("O"), terminal.press("l");
  std::string screen = terminal.await("the filter", [](const std::string& text) {
    return text.find("filter: cOl_") != std::string::npos && text.find("hot (") == std::string::npos &&
           text.find("cold (") != std::string::npos;
  });
  terminal.press("Escape");
  terminal.await_text("hot (");
  terminal.press("s"), terminal.press("s"), terminal.press("S");  // by %Total: callers come first
  terminal.await_match("TotalTime.*\n.*main \\(lua5.4\\)");
  terminal.press("S");
  terminal.await_match("TotalTime.*\n.*hot \\(");
  terminal.press("l");
  terminal.await_text("  Line (file:line)");
  terminal.press("t");
  terminal.await_match(fmt::format("lua5.4 +{}|lua.* {} +hot", busy.running.pid(), busy.running.pid()));
  terminal.press("t"), terminal.press("l"), terminal.press("w");
  terminal.await_text("% of all the time");
  terminal.press("w"), terminal.press("+");
  terminal.await_text("every 0.5 s");
  terminal.press("-"), terminal.press("-");
  terminal.await_text("every 2 s");
  for (int i = 0; i < 3; ++i) terminal.press("+");
  terminal.press("2");
  terminal.await_match("TotalTime.*\n.*main \\(lua5.4\\)");
  terminal.press("1"), terminal.press("Home");
  terminal.await_match("TotalTime.*\n.*hot \\(");
  terminal.press("d");
  terminal.await_match(
      "where it was seen last, innermost call first *\n +hot \\(.*busy.lua:3\\) *\n +> local function hot\\(\\)");
  terminal.await_match("\n +spin \\(.*busy.lua:7\\) *\n +> repeat if is_hot");
  terminal.press("v");
  terminal.await("Lua only", [](const std::string& text) {
    return text.find("Lua only") != std::string::npos && text.find(" main (lua5.4)") == std::string::npos &&
           text.find("hot (") != std::string::npos;
  });
  terminal.press("v");
  terminal.await("everything", [](const std::string& text) {
    return text.find("everything") != std::string::npos && text.find("libc_start") != std::string::npos;
  });
  terminal.press("v");
  terminal.await("C and Lua", [](const std::string& text) { return text.find("everything") == std::string::npos; });
  terminal.press("d");
  terminal.await("no stack", [](const std::string& text) { return text.find("seen last") == std::string::npos; });
  terminal.press("Home"), terminal.press("Enter");
  screen = terminal.await_text("(its own work)");
  CHECK(screen.find("spin (") != std::string::npos);
  terminal.press("Up"), terminal.press("Enter");
  terminal.await_match("called by\n.*\n.*the function\n.*spin \\(");
  terminal.press("Escape"), terminal.press("Escape");
  terminal.await_text("  Function (file:line)");
  terminal.press("p");
  screen = terminal.await_text("paused");
  const std::string hot = line_with(screen, "hot (");
  terminal.press("p");
  terminal.await("other numbers", [&](const std::string& text) {
    return text.find("paused") == std::string::npos && line_with(text, "hot (") != hot;
  });
  terminal.await_match(" ([2-9]|[0-9]{2,})\\.[0-9]+s\n");
  terminal.press("r");
  terminal.await_match(" 0\\.[0-9]+s\n");
  terminal.press("End"), terminal.press("PPage"), terminal.press("NPage"), terminal.press("Down"), terminal.press("k");
  terminal.press("q");
  terminal.await_text("status 0");
}

TEST_CASE("top shows which process it is", "[top]") {
  Terminal terminal(100, 30);
  const std::string lua = joined(target(lua54).command), script = terminal.folder.write("busy.lua", hot_and_cold);
  terminal.type(fmt::format("{0} top -- sh -c '{1} {2} one & {1} {2} two & wait'", luaspy_program, lua, script));
  terminal.await_text("processes,");
  terminal.press("P");
  terminal.await_text("  Process ");
  terminal.await("two rows of hot", [](const std::string& screen) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = screen.find(" hot (", at)) != std::string::npos; ++at) ++count;
    return count == 2;
  });
  terminal.press("C-c");
  terminal.await("the shell", [&](const std::string&) { return terminal.is_as_before(); });
}

TEST_CASE("top stays when the target ends", "[top]") {
  const Busy busy(lua54, "0.5");
  Terminal terminal(100, 30);
  terminal.type(busy.top() + "; echo sta''tus $?");
  terminal.await_text("the target has ended");
  CHECK(terminal.is_taken());
  terminal.await_text("hot (");
  terminal.press("Home"), terminal.press("Enter");
  terminal.await_text("(its own work)");
  terminal.press("Escape");
  const std::string screen = terminal.await_text("cold (");
  CHECK(screen.find("hot (") != std::string::npos);
  terminal.press("q");
  terminal.await_text("status 0");
  CHECK(terminal.is_as_before());
}

TEST_CASE("top gives the terminal back whatever ends it", "[top]") {
  const Busy busy;
  Terminal terminal(100, 30);
  terminal.type("stty -a >before");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    INFO("signal " << signal);
    terminal.type(busy.top() + "; clear; stty -a >after; cmp before after && echo sa''me");
    terminal.await_text("hot (");
    ::kill(terminal.luaspy_pid(), signal);
    terminal.await_text("same");
    CHECK(terminal.is_as_before());
    terminal.type("clear");
    terminal.await("a clear screen", [](const std::string& text) { return text.find("same") == std::string::npos; });
  }
  terminal.type(busy.top());
  terminal.await_text("hot (");
  terminal.press("C-c");
  terminal.await("the shell", [&](const std::string&) { return terminal.is_as_before(); });
  CHECK(busy.running.alive());
}

TEST_CASE("Ctrl-Z stops top with nothing of the target standing still, and fg brings it back", "[top]") {
  const Busy busy;
  Terminal terminal(100, 30);
  terminal.type(busy.top("-r 1000"));
  terminal.await_text("hot (");
  for (int i = 0; i < 3; ++i) {
    terminal.press("C-z");
    terminal.await_text("Stopped");
    CHECK(terminal.is_as_before());
    const std::string status = read_file(fmt::format("/proc/{}/status", busy.running.pid()));
    CHECK(status.find("TracerPid:\t0\n") != std::string::npos);
    CHECK(status.find("State:\tR") != std::string::npos);
    terminal.type("clear; fg");
    terminal.await_text("hot (");
    CHECK(terminal.is_taken());
  }
  terminal.press("q");
  terminal.await("the shell", [&](const std::string&) { return terminal.is_as_before(); });
}

TEST_CASE("top in terminals of other kinds", "[top]") {
  const Busy busy;
  SECTION("60 columns, and back") {
    Terminal terminal(100, 30);
    terminal.type(busy.top());
    terminal.await_text("hot (");
    CHECK(terminal.screen(true).find("\x1b[38;5;") != std::string::npos);
    terminal.resize(60, 20);
    const std::string screen = terminal.await("a narrow screen", [](const std::string& text) {
      return text.starts_with("luaspy top") && line_with(text, "q quit").find("p pause") != std::string::npos;
    });
    CHECK(std::count(screen.begin(), screen.end(), '\n') == 20);
    CHECK(screen.find("hot (") != std::string::npos);
    std::istringstream lines(screen);
    for (std::string line; std::getline(lines, line);) CHECK(width_of(line) <= 60);
    terminal.resize(100, 30);
    terminal.await_text("l lines");
    terminal.press("q");
  }
  SECTION("40 columns") {
    Terminal terminal(40, 16);
    terminal.type(busy.top());
    const std::string screen = terminal.await_match("%Own %Total  Function.*\n.*hot \\(");
    std::istringstream lines(screen);
    for (std::string line; std::getline(lines, line);) CHECK(width_of(line) <= 40);
    CHECK(screen.find("? help") != std::string::npos);
    terminal.press("q");
  }
  SECTION("NO_COLOR") {
    Terminal terminal(100, 30, "NO_COLOR=1");
    terminal.type(busy.top());
    terminal.await_text("hot (");
    CHECK_FALSE(std::regex_search(terminal.screen(true), std::regex("\x1b\\[([0-9;]*;)?[34][0-7]([;m])")));
    CHECK_FALSE(std::regex_search(terminal.screen(true), std::regex("\x1b\\[[34]8;")));
  }
  SECTION("a locale without UTF-8") {
    Terminal terminal(100, 30, "LC_ALL=C");
    terminal.type(busy.top());
    for (const char c : terminal.await_text("hot (")) REQUIRE(static_cast<unsigned char>(c) < 0x80);
  }
  SECTION("no screen to be had") {
    Terminal terminal(100, 30, "TERM=dumb");
    terminal.type(busy.top("--interval 0.3 --batch --count 1"));
    terminal.await_text("%Own  %Total   OwnTime  TotalTime  Function (file:line)");
    CHECK(terminal.is_as_before());
    const Finished piped = luaspy({"top", "-d", "0.5", "--pid", std::to_string(busy.running.pid())});
    CHECK(piped.status == 0);
    CHECK(piped.err ==
          "luaspy: standard output is not a terminal that can show a screen: printing tables, as with --batch\n");
    CHECK(piped.out.find("hot (") != std::string::npos);
    CHECK(piped.out.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a command that top has started: its output comes after the screen, its exit status is luaspy's", "[top]") {
  Terminal terminal(100, 30);
  const std::string lua = joined(target(lua54).command), script = terminal.folder.write("busy.lua", hot_and_cold);
  terminal.type(
      fmt::format("{} top -- {} {} 'to stdout' 0.3 'to stderr' 7; echo sta''tus $?", luaspy_program, lua, script));
  const std::string screen = terminal.await_text("the target has ended");
  CHECK(screen.find("hot (") != std::string::npos);
  CHECK(screen.find("to stdout") == line_with(screen, "luaspy top").find("to stdout"));  // only in the command line
  terminal.press("q");
  const std::string after = terminal.await_text("status 7");
  CHECK(std::regex_search(after, std::regex("\nto stdout\nto stderr\n")));
  CHECK(run({"sh", "-c", "ls " + terminal.folder.path() + "/luaspy-top-* 2>/dev/null"}).out.empty());

  // After leaving early, the command and its output continue. Streams that are not connected to the
  // terminal are left alone.
  terminal.type(fmt::format("clear; {} top -- {} {} 'early' 0.6 'late' 9 2>errors; echo sta''tus $?", luaspy_program,
                            lua, script));
  terminal.await_text("hot (");
  terminal.press("q");
  terminal.await_match("(^|\n)early\n");
  terminal.await_text("status 9");
  CHECK(terminal.is_as_before());
}

TEST_CASE("top --batch", "[top][smoke]") {
  const Busy busy;
  const std::string pid = std::to_string(busy.running.pid());
  const Finished finished = luaspy(
      {"top", "--batch", "--interval", "0.8", "--count", "2", "-r", "200", "--max-stopped", "100", "--pid", pid});
  INFO(finished.out << finished.err);
  CHECK(finished.status == 0);
  CHECK(finished.err.empty());
  std::istringstream lines(finished.out);
  int tables = 0;
  double own = 0, hot_time = 0, cold_time = 0;
  const std::regex row(" *([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.]+)  (\\S.*)");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      ++tables;
      CHECK(own > 90);
      CHECK(own < 110);
      own = 0;
    }
    std::smatch fields;
    // On a busy machine it did not have a CPU all the time.
    if (std::regex_search(line, fields, std::regex("^# .* waiting for a CPU ([0-9.]+) %"))) own += std::stod(fields[1]);
    if (line.empty() || line.starts_with('#') || line.starts_with("  %Own")) continue;
    INFO(line);
    REQUIRE(std::regex_match(line, fields, row));
    own += std::stod(fields[1]);
    CHECK(std::stod(fields[1]) <= std::stod(fields[2]));
    if (fields[5].str().find("busy.lua:3)") != std::string::npos) {
      CHECK(std::stod(fields[4]) > hot_time);
      hot_time = std::stod(fields[4]);
    }
    if (fields[5].str().find("busy.lua:4)") != std::string::npos) cold_time = std::stod(fields[4]);
  }
  CHECK(tables == 2);
  CHECK(is_seven_tenths(hot_time, cold_time));
  CHECK(busy.running.alive());
  CHECK(luaspy({"top", "--count", "2", "--pid", "1"}).status == 2);
  CHECK(luaspy({"top", "--batch"}).status == 2);
  CHECK(luaspy({"top", "--batch", "--pid", "999999999"}).status == 3);
}

}  // namespace luaspy::live::live_top_test
