// Functions that are loaded, called and thrown away, and states that are made for one request: they are freed, and
// others are in their place, before the stack in which they were called is named.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "named_stacks.h"
#include "support/harness.h"

namespace luaspy::live::thrown_away_test {
namespace {

struct Count {
  std::int64_t samples = 0, without_place = 0, contradictory = 0;
  std::set<std::string> numbers;  // of the chunks seen
};

// The four digits after each `word` in a frame: the number of the chunk that it belongs to.
void add_numbers(const std::string& frame, const std::string& word, std::set<std::string>& numbers) {
  for (std::size_t at = frame.find(word); at != frame.npos; at = frame.find(word, at + 1)) {
    const std::string number = frame.substr(at + word.size(), 4);
    if (number.size() == 4 && std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }))
      numbers.insert(number);
  }
}

// A stack is of one chunk: if two of its functions belong to different ones, a name is wrong.
void count_stack(const FoldedStack& stack, Count& count) {
  std::set<std::string> numbers;
  bool without_place = false;
  for (const std::string& frame : stack.frames) {
    without_place |= frame.find("(?") != frame.npos;
    for (const char* const word : {"tpl", "work", "request"}) add_numbers(frame, word, numbers);
  }
  count.samples += stack.count;
  if (without_place) count.without_place += stack.count;
  if (numbers.size() > 1) count.contradictory += stack.count;
  count.numbers.insert(numbers.begin(), numbers.end());
}

Count record(const Running& running, const Words& options = {}, std::int64_t enough = 300) {
  Count count;
  for (double seconds = 0.5; seconds < 30 && count.samples < enough; seconds *= 2) {
    const Finished recorded = luaspy(Words{"record", "-f", "folded", "-o", "-", "-r", "1000", "-d",
                                           fmt::format("{}", seconds), "--max-stopped", "100", "--pid",
                                           std::to_string(running.pid())} +
                                     options);
    INFO(recorded.err);
    REQUIRE(recorded.status == 0);
    count = {};
    for (const FoldedStack& stack : parse_folded(recorded.out)) count_stack(stack, count);
  }
  return count;
}

void check(const Count& count) {
  CHECK(count.samples >= 300);
  CHECK(100 * count.without_place <= count.samples);
  CHECK(100 * count.contradictory <= count.samples);
}

// Of 3,000 chunks that take equally long, 300 samples or more meet some 285 or more. If functions were taken for those
// that were at their addresses before, it would be far fewer.
void check_chunks(const Count& count) {
  check(count);
  CHECK(count.numbers.size() > 150);
}

}  // namespace

TEST_CASE("functions that are thrown away are named", "[names][luas]") {
  for (const Words& interpreter : interpreters()) {
    INFO(fmt::format("{}", fmt::join(interpreter, " ")));
    Running running(interpreter + Words{workload("thrown_away.lua")});
    running.read_until("READY");
    check_chunks(record(running));
  }
}

TEST_CASE("functions that machine code has inlined are named, though they are thrown away", "[names]") {
  Running running(command_of(target(luajit), Jit::on) + Words{"-Ohotloop=2", workload("luajit/thrown_away.lua")});
  running.read_until("READY");
  constexpr std::int64_t enough = 1000;  // some 30 of them were without a place
  const Count count = record(running, {}, enough);
  CHECK(count.samples >= enough);
  CHECK(100 * count.without_place <= count.samples);
}

TEST_CASE("functions that are thrown away are named in each stop, and in coroutines", "[names]") {
  for (const Words& interpreter : {lua({}), command_of(target(luajit), Jit::on)}) {
    INFO(fmt::format("{}", fmt::join(interpreter, " ")));
    Running running(interpreter + Words{workload("thrown_away.lua"), "coroutines"});
    running.read_until("READY");
    check_chunks(record(running, {"--always-stop"}));
  }
}

TEST_CASE("dump names functions that are thrown away at its first look", "[names]") {
  for (const Words& interpreter : {lua({}), command_of(target(luajit), Jit::on)}) {
    INFO(fmt::format("{}", fmt::join(interpreter, " ")));
    Running running(interpreter + Words{workload("thrown_away.lua")});
    running.read_until("READY");
    int without_place = 0;
    for (int i = 0; i < 6; ++i) {
      const nlohmann::json look = dump(running.pid());
      for (const nlohmann::json& frame : look.at("threads").at(0).at("frames"))
        without_place += frame.at("kind") == "lua" && frame.at("file") == "?";
    }
    CHECK(without_place == 0);
  }
}

TEST_CASE("functions of a state that is closed after each request are named", "[names][all]") {
  const Folder folder;
  const std::string script = folder.write("request.lua", R"(
local function serve(size)
  local sum = 0
  for i = 1, size do sum = sum + i % 7 end
  return sum
end
local sum = serve(50000)
)");
  for (const std::string& version : {source_version("5.1"), source_version("5.4"), source_version("5.5")}) {
    INFO(version);
    Running running({compile(folder, "requests", version), script});
    running.read_until("READY");
    check(record(running));
  }
}

}  // namespace luaspy::live::thrown_away_test
