#include "terminal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <regex>
#include <sstream>

namespace luaspy::live {

std::string joined(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string line_with(const std::string& screen, const std::string& text) {
  std::istringstream lines(screen);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(text) != std::string::npos) return line;
  }
  return {};
}

Terminal::Terminal(int width, int height, const std::string& environment) {
  run_tmux({"new-session", "-d", "-c", folder.path(), "-x", std::to_string(width), "-y", std::to_string(height),
            fmt::format("env -u NO_COLOR LC_ALL=C.UTF-8 TERM=screen-256color TMPDIR='{}' {} PS1='$ ' sh -i",
                        folder.path(), environment)});
  await("the shell", [](const std::string& screen) { return screen.starts_with("$"); });
  shell_ = std::stoi(run_tmux({"display-message", "-p", "#{pane_pid}"}));
}

void Terminal::type(const std::string& line) {
  run_tmux({"send-keys", "-l", line});
  press("Enter");
}

void Terminal::resize(int width, int height) {
  run_tmux({"resize-window", "-x", std::to_string(width), "-y", std::to_string(height)});
}

std::string Terminal::screen(bool styled) {
  return run_tmux(styled ? Words{"capture-pane", "-p", "-e"} : Words{"capture-pane", "-p"});
}

std::string Terminal::await(const std::string& what, const std::function<bool(const std::string&)>& holds) {
  std::string last;
  Running patience({"sleep", "30"});
  patience.await(what, [&] { return holds(last = screen()); });
  return last;
}

std::string Terminal::await_text(const std::string& text) {
  return await(text, [&](const std::string& screen) { return screen.find(text) != std::string::npos; });
}

std::string Terminal::await_match(const std::string& pattern) {
  return await(pattern, [&](const std::string& screen) { return std::regex_search(screen, std::regex(pattern)); });
}

pid_t Terminal::luaspy_pid() const {
  std::istringstream children(read_file(fmt::format("/proc/{0}/task/{0}/children", shell_)));
  for (pid_t child = 0; children >> child;) {
    if (read_file(fmt::format("/proc/{}/comm", child)) == "luaspy\n") return child;
  }
  FAIL("no luaspy runs in the shell");
  return 0;
}

Finished Terminal::tmux(const Words& arguments) const {
  Words command = {"env", "-u", "TMUX", "LC_ALL=C.UTF-8", "tmux", "-u", "-S", folder.path("tmux"), "-f", "/dev/null"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command);
}

std::string Terminal::run_tmux(const Words& arguments) const {
  const Finished finished = tmux(arguments);
  INFO(joined(arguments) << ": " << finished.err);
  REQUIRE(finished.status == 0);
  return finished.out;
}

}  // namespace luaspy::live
