// mix.lua records with its call hook which Lua function can be called by which: a profile of it
// must not show any other pair.

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "support/harness.h"

namespace luaspy::live::pairs_test {
namespace {

// As luaspy names chunks: without the sign that Lua puts before a file's name or a name that load
// was given.
std::string without_sign(const std::string& function) {
  return function.starts_with('@') || function.starts_with('=') ? function.substr(1) : function;
}

struct Pairs {
  std::set<std::pair<std::string, std::string>> seen;
  bool possible(const std::string& caller, const std::string& callee) const {
    return seen.contains({caller, callee}) || seen.contains({"*", callee});
  }
};

Pairs read_pairs(const std::string& file) {
  Pairs pairs;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t arrow = line.find(" -> ");
    REQUIRE(arrow != std::string::npos);
    pairs.seen.emplace(without_sign(line.substr(0, arrow)), without_sign(line.substr(arrow + 4)));
  }
  return pairs;
}

// A frame of a speedscope file, named as mix.lua names functions; empty for a marker, and for a
// function that was collected before its name could be read (mix.lua makes some with load).
std::string function_of(const nlohmann::json& frame) {
  const std::string name = frame.at("name");
  if (name.ends_with(" [C]")) return "[C]";
  if (!frame.contains("file") || frame.at("file") == "?") return {};
  return fmt::format("{}:{}", frame.at("file").get<std::string>(), frame.value("line", 0));
}

// How many of a thousand samples may be without a Lua stack, and how many may have an impossible
// pair.
struct Tolerance {
  int empty, impossible;
};

// A stack of a speedscope profile, outermost first.
std::string text_of(const nlohmann::json& stack, const nlohmann::json& frames) {
  std::string text;
  for (const nlohmann::json& index : stack) text += " " + frames.at(index.get<std::size_t>()).dump();
  return text;
}

void check(Words command, Tolerance tolerance) {
  const Folder folder;
  command.insert(command.end(), {workload("mix.lua"), "pairs", folder.path("pairs")});
  Running running(command);
  running.read_until("READY");
  const Pairs pairs = read_pairs(folder.path("pairs"));
  REQUIRE(pairs.seen.size() > 50);

  const Finished recorded = luaspy({"record", "-r", "1000", "--max-stopped", "100", "-d", "2", "-f", "speedscope", "-o",
                                    folder.path("profile"), "--mode", "lua", "--pid", std::to_string(running.pid())});
  INFO(Catch::StringMaker<Words>::convert(command) << "\n" << recorded.err);
  REQUIRE(recorded.status == 0);
  const nlohmann::json profile = nlohmann::json::parse(read_file(folder.path("profile")));
  const nlohmann::json& frames = profile.at("shared").at("frames");
  REQUIRE(profile.at("profiles").size() == 1);

  std::map<std::string, int> impossible;
  std::set<std::pair<std::string, std::string>> met;
  int samples = 0, empty = 0, all_pairs = 0, with_impossible = 0;
  for (const nlohmann::json& stack : profile.at("profiles")[0].at("samples")) {
    ++samples;
    empty += stack.empty() ? 1 : 0;
    std::string caller;
    bool possible = true;
    for (const nlohmann::json& index : stack) {
      const std::string callee = function_of(frames.at(index.get<std::size_t>()));
      if (!caller.empty() && !callee.empty()) {
        ++all_pairs;
        met.emplace(caller, callee);
        if (!pairs.possible(caller, callee))
          possible = false, ++impossible[caller + " -> " + callee + " in" + text_of(stack, frames)];
      }
      caller = callee;
    }
    with_impossible += possible ? 0 : 1;
  }
  std::string impossible_ones;
  for (const auto& [pair, times] : impossible) impossible_ones += fmt::format("  {} ({} times)\n", pair, times);
  CAPTURE(samples, empty, all_pairs, impossible_ones);
  CHECK(samples > 300);
  CHECK(empty * 1000 <= tolerance.empty * samples);
  CHECK(all_pairs > samples);
  CHECK(met.size() > 40);  // otherwise the test has checked nothing
  CHECK(with_impossible * 1000 <= tolerance.impossible * samples);
}

}  // namespace

TEST_CASE("no caller and callee that the program has not seen itself", "[pairs][luas]") {
  check(target(GENERATE_COPY(
                   from_range(prepared({"debian-lua5.1-bookworm", "debian-lua5.2-bookworm", "debian-lua5.3-bookworm",
                                        "debian-lua5.4-bookworm", "debian-lua5.5-sid"}))))
            .command,
        {1, 0});
}

TEST_CASE("no caller and callee that a LuaJIT program has not seen itself", "[luajit_pairs][luas]") {
  const std::string name = GENERATE_COPY(
      from_range(prepared({"debian-luajit-bookworm", "debian-luajit-experimental", "luajit-2.0.20260330-gc32",
                           "luajit-2.1.20170501-gc64", "luajit-2.1.newest-gc32", "luajit-2.1.tarantool2.6-gc32"})));
  const Jit jit = GENERATE(Jit::off, Jit::on);
  // A stack that is being moved is not readable: its base belongs to the old one. Traces may just
  // be left or entered.
  check(command_of(target(name), jit), {20, jit == Jit::off ? 0 : 1});
}

}  // namespace luaspy::live::pairs_test
