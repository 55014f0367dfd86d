// Suspended coroutines of a recording, compared with what the program itself knows.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "support/harness.h"

namespace luaspy::live::suspended_test {
namespace {

struct Waits {
  double average = 0, longest_s = 0;
  int most = 0, stacks = 0;  // most: of all stacks
};

// By the name of the innermost Lua function, of the part from `from` to `to` seconds.
std::map<std::string, Waits> waits_in(const std::string& file, double from, double to, nlohmann::json& coroutines) {
  const Finished reported = luaspy(
      {"report", file, "--coroutines", "--json", "--from", fmt::format("{}", from), "--to", fmt::format("{}", to)});
  INFO(reported.err);
  REQUIRE(reported.status == 0);
  coroutines = nlohmann::json::parse(reported.out)["coroutines"];
  std::map<std::string, Waits> waits;
  for (const auto& place : coroutines["places"]) {
    std::string innermost;
    for (const auto& frame : place["stack"]) {
      const auto text = frame.get<std::string>();
      if (text.find(".lua:") != std::string::npos) innermost = text.substr(0, text.find(' '));
    }
    Waits& of = waits[innermost];
    of.average += place["average"].get<double>();
    of.most += place["most"].get<int>();
    ++of.stacks;
    of.longest_s = std::max(of.longest_s, place["longest_seconds"].get<double>());
  }
  return waits;
}

void check(const std::string& name) {
  const Folder folder;
  const std::string file = folder.path("waits.luaspy");
  Words command = target(name).command;
  command.insert(command.end(), {workload("coroutine_waits.lua"), "3"});
  Running running(command);
  running.read_until("READY");
  const Finished recorded = luaspy({"record", "--coroutines", "--coroutine-rate", "20", "-f", "raw", "-o", file,
                                    "--pid", std::to_string(running.pid())});
  CHECK(running.wait() == 0);
  const std::string said = running.rest();
  INFO(name << ": " << said << recorded.err);
  REQUIRE(recorded.status == 0);
  int before = 0, after = 0, client = 0, lock = 0, in_file = 0;
  double first = 0, second = 0;
  REQUIRE(std::sscanf(said.c_str(), "query %d %d client %d lock %d file %d seconds %lf %lf", &before, &after, &client,
                      &lock, &in_file, &first, &second) == 7);
  nlohmann::json all;
  waits_in(file, 0, 1e6, all);
  const double seconds = all["seconds"].get<double>();
  REQUIRE(all["looks"].get<int>() > 20);
  CHECK(all["unread"] == 0);
  CHECK(all["most"].get<int>() <= before + client + lock + in_file);
  // One coroutine runs at a time. The halves are told apart by the time of a CPU, which others may have had: the first
  // and the last quarter are surely of one half each.
  constexpr double running_one = 1;
  for (const bool is_first : {true, false}) {
    nlohmann::json part;
    const double from = is_first ? 0 : seconds * 3 / 4, to = is_first ? seconds / 4 : seconds;
    const std::map<std::string, Waits> waits = waits_in(file, from, to, part);
    INFO(part.dump(1));
    for (const auto& [place, expected] : {std::pair("wait_query", is_first ? before : after),
                                          {"wait_client", client},
                                          {"wait_lock", lock},
                                          {"wait_file", in_file}}) {
      INFO(place);
      REQUIRE(waits.contains(place));
      const Waits& of = waits.at(place);
      CHECK(of.average > expected - running_one);
      CHECK(of.average < expected + running_one);
      // Those that are never at one place for long are seen at an instant of their own each.
      const bool stays = of.stacks == 1 && std::string_view(place) != "wait_file";
      if (stays) CHECK(std::abs(of.most - expected) <= 1);
    }
    CHECK(waits.at("wait_client").longest_s > (is_first ? to / 2 : seconds / 2));
    CHECK(waits.at("wait_query").longest_s < 0.5);
  }
}

}  // namespace

TEST_CASE("how many coroutines wait where is what the program knows", "[live][suspended]") {
  for (const char* const name : {"debian-lua5.1-bookworm", "debian-lua5.4-bookworm", "debian-luajit-bookworm"})
    check(name);
}

TEST_CASE("how many coroutines wait where is what the program knows, on all Luas", "[live][suspended][all]") {
  for (const char* const name : {"debian-lua5.2-bookworm", "debian-lua5.3-bookworm", "debian-lua5.5-sid",
                                 "luajit-2.1.newest-gc32", "luajit-2.0.20260330-gc32"})
    check(name);
}

// They wait on C stacks of their own, and are no suspended coroutines to Lua.
TEST_CASE("how many fibers of Tarantool wait where, and which", "[live][suspended][all]") {
  for (const bool busy : {false, true}) {
    const Folder folder;
    const std::string file = folder.path("fibers.luaspy");
    Words command = host("tarantool");
    command.push_back(workload("luajit/waits-tarantool.lua"));
    if (busy) command.push_back("busy");
    Running tarantool(command);
    tarantool.read_until("READY");
    const Finished recorded = luaspy({"record", "--coroutines", "--coroutine-rate", "20", "--label", "fiber", "-d", "3",
                                      "-r", "100", "--max-stopped", "100", "-f", "raw", "-o", file, "--pid",
                                      std::to_string(tarantool.pid())});
    INFO((busy ? "busy\n" : "idle\n") << recorded.err);
    REQUIRE(recorded.status == 0);
    nlohmann::json all;
    const std::map<std::string, Waits> waits = waits_in(file, 0, 1e6, all);
    INFO(all.dump(1));
    REQUIRE(all["looks"].get<int>() > 10);
    REQUIRE(waits.contains("wait_message"));
    REQUIRE(waits.contains("wait_timer"));
    CHECK(waits.at("wait_message").average == Approx(30));
    CHECK(waits.at("wait_timer").average == Approx(5));
    // One of the three runs. Which is known as of the last stop: another one may run by now, and be seen at its work.
    const double turns = waits.contains("wait_turn") ? waits.at("wait_turn").average : 0;
    const double at_work = waits.contains("work") ? waits.at("work").average : 0;
    CHECK(turns + at_work == Approx(busy ? 2 : 0).margin(0.2));
    CHECK(at_work <= 1);
    const Finished names = luaspy({"report", file, "--coroutines", "--by", "fiber", "--top", "100"});
    INFO(names.out << names.err);
    for (const char* const name : {"reader1", "reader30", "sleeper5"})
      CHECK(names.out.find(std::string("  ") + name + "\n") != std::string::npos);
  }
}

TEST_CASE("suspended coroutines are told as a table, and a recording without them says so", "[live][suspended]") {
  const Folder folder;
  for (const bool looked : {true, false}) {
    const std::string file = folder.path(looked ? "with.luaspy" : "without.luaspy");
    Words words = {"record", "-f", "raw", "-o", file};
    if (looked) words.insert(words.end(), {"--coroutines", "--coroutine-rate", "20"});
    words.push_back("--");
    for (const std::string& word : lua({workload("coroutine_waits.lua"), "0.6", "10"})) words.push_back(word);
    const Finished recorded = luaspy(words);
    INFO(recorded.err);
    REQUIRE(recorded.status == 0);
    const Finished report = luaspy({"report", file});
    INFO(report.out);
    CHECK((report.out.find("Suspended coroutines: ") != std::string::npos) == looked);
    const Finished table = luaspy({"report", file, "--coroutines"});
    INFO(table.out << table.err);
    CHECK(table.status == (looked ? 0 : 11));
    if (looked) {
      CHECK(table.out.find("wait_client (") != std::string::npos);
      CHECK(table.out.find("  client (") != std::string::npos);
    } else {
      CHECK(table.err.find("has no looks at suspended coroutines. `luaspy record --coroutines`") != std::string::npos);
    }
  }
}

}  // namespace luaspy::live::suspended_test
