// report on raw recordings of real programs: what it prints agrees with what they do, and it
// distinguishes two versions of a script from two runs of one.

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>

#include "support/harness.h"

namespace luaspy::live::live_report_test {
namespace {

// `work` takes half of the time with `rounds` of 10, the count of its loop: as much as the other
// two together.
std::string script_of(int rounds, double seconds) {
  return fmt::format(R"lua(
local function count(n)
  local x = 0.5
  for i = 1, n do x = x * 1.0000001 + i % 3 end
  return x
end
local function work() local x = 0.5 for i = 1, 2000 * {} do x = x * 1.0000001 + i % 3 end return x end
local function play()
  local x = 0.5
  for i = 1, 10000 do x = x * 1.0000001 + i % 3 end
  return x
end
while os.clock() < {} do work() play() count(10000) end
)lua",
                     rounds, seconds);
}

Words record_raw(const std::string& file, const Words& command) {
  Words words = {"record", "-f", "raw", "-o", file, "--rate", "4000", "--max-stopped", "60", "--"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::string recorded(const Folder& folder, const std::string& name, const std::string& source) {
  const std::string path = folder.write("script.lua", source), raw = folder.path(name + ".luaspy");
  Words command = target("debian-lua5.4-bookworm").command;
  command.push_back(path);
  const Finished finished = luaspy(record_raw(raw, command));
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return raw;
}

std::string report(const Words& arguments) {
  Words words = {"report"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const Finished finished = luaspy(words);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return finished.out;
}

std::int64_t samples_in(const std::string& raw) {
  std::int64_t sum = 0;
  for (const FoldedStack& stack : parse_folded(report({raw, "-f", "folded", "-o", "-"}))) sum += stack.count;
  return sum;
}

void check_refused(const Words& arguments, int status, const std::string& pattern) {
  Words words = {"report"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const Finished finished = luaspy(words);
  INFO(finished.err << "\nshould match: " << pattern);
  CHECK(finished.status == status);
  CHECK(finished.out.empty());
  CHECK(std::regex_search(finished.err, std::regex(pattern)));
}

bool has(const std::string& text, const std::string& pattern) { return std::regex_search(text, std::regex(pattern)); }

}  // namespace

TEST_CASE("report reads what comes through a pipe, and adds up several recordings", "[report][smoke]") {
  const Folder folder;
  const std::string one = recorded(folder, "one", script_of(10, 0.4)),
                    two = recorded(folder, "two", script_of(30, 0.8));
  const auto piped = [&](const Words& options, const std::string& recording) {
    const Finished finished = run(Words{luaspy_program, "report", "-"} + options, read_file(recording));
    INFO(finished.err);
    CHECK(finished.status == 0);
    return finished.out;
  };
  CHECK(piped({}, one) == report({one}));
  // On a busy machine a luaspy with sanitizers saw more than 0.2 s later that the program had ended.
  CHECK(piped({"-f", "folded", "-o", "-", "--from", "-0.6"}, two) ==
        report({two, "-f", "folded", "-o", "-", "--from", "-0.6"}));
  (void)piped({"-o", folder.path("page.html")}, one);
  CHECK(report({folder.path("page.html"), "-f", "folded", "-o", "-"}) == report({one, "-f", "folded", "-o", "-"}));
  CHECK(run({luaspy_program, "report", "-"}, "nonsense").err.starts_with("luaspy: standard input: "));

  const auto json = [&](const Words& words) { return nlohmann::json::parse(report(Words{"--json"} + words)); };
  const nlohmann::json first = json({one}), second = json({two}), both = json({one, two});
  for (const char* const field : {"samples", "weight", "idle"})
    CHECK(both.at("recording").at(field) ==
          first.at("recording").at(field).get<std::int64_t>() + second.at("recording").at(field).get<std::int64_t>());
  CHECK(both.at("threads").size() == first.at("threads").size() + second.at("threads").size());
  const auto own = [](const nlohmann::json& of, const std::string& name) {
    std::int64_t samples = 0;
    for (const nlohmann::json& function : of.at("functions"))
      samples += function.at("name") == name ? function.at("own_samples").get<std::int64_t>() : 0;
    return samples;
  };
  CHECK(own(both, "work") == own(first, "work") + own(second, "work"));
  std::map<std::string, std::int64_t> roots;
  for (const FoldedStack& stack : parse_folded(report({one, two, "--by-file", "-f", "folded", "-o", "-"})))
    roots[stack.frames.front()] += stack.count;
  CHECK(roots == std::map<std::string, std::int64_t>{
                     {fmt::format("[{}]", one), first.at("recording").at("samples").get<std::int64_t>()},
                     {fmt::format("[{}]", two), second.at("recording").at("samples").get<std::int64_t>()}});
  (void)report({one, two, "-o", folder.path("both.html")});
  CHECK(luaspy({"report", one, two, "-f", "chrometrace"}).status == 2);
  CHECK(luaspy({"report", one, two, "-f", "raw"}).status == 2);
}

TEST_CASE("two runs of a script do not differ, and one in which a function takes 20 % longer does", "[report]") {
  const Folder folder;
  // The difference is 4.5 % of all samples. The interval of the report is about four standard deviations
  // wide, so one of 2.2 % leaves four more. That takes some 16,000 samples, and more on a busy machine,
  // where samples that come together tell less.
  constexpr double enough = 20'000, tried = 2, narrow = 2.2;
  const std::string again = recorded(folder, "again", script_of(10, tried));
  const auto seconds_for = [&](double seconds, std::int64_t samples) {
    return std::clamp(enough * seconds / static_cast<double>(std::max<std::int64_t>(samples, 1)), tried, 40.0);
  };
  std::string first, slower;
  const std::string slower_work = "larger share \\+[0-9]+ % +work \\(.*script.lua:7\\)";
  double seconds = seconds_for(tried, samples_in(again)), interval = 100;
  // The interval alone decides how long: what is found is judged once.
  for (int attempt = 0; attempt < 4 && interval > narrow; ++attempt) {
    first = recorded(folder, "first", script_of(10, seconds)),
    slower = recorded(folder, "slower", script_of(12, seconds));
    const std::string text = report({"--diff", first, slower});
    INFO(text);
    std::smatch match;
    REQUIRE(std::regex_search(text, match, std::regex("(?:±|\\+-)([0-9.]+) [^\n]* work \\(")));
    interval = std::stod(match[1]);
    seconds = std::clamp(1.2 * seconds * interval * interval / (narrow * narrow), tried, 40.0);
  }
  REQUIRE(interval <= narrow);
  const std::string same = report({"--diff", first, again});
  INFO(same);
  CHECK(has(same, "no significant difference"));
  const std::string different = report({"--diff", first, slower});
  INFO(different);
  CHECK(has(different, slower_work));
  CHECK(!has(different, "larger.* play|larger.* count|smaller.* work"));
  CHECK(has(report({"--diff", slower, first}), "smaller share -[0-9]+ % +work "));
  const std::vector<FoldedStack> stacks = parse_folded(report({first, "-f", "folded", "-o", "-"}));
  std::int64_t of_work = 0, all = 0;
  for (const FoldedStack& stack : stacks)
    all += stack.count, of_work += stack.frames.back().starts_with("work ") ? stack.count : 0;
  CHECK(of_work * 100 > 40 * all);
  const std::string folded = report({"--diff", first, slower, "-f", "folded"});
  CHECK(has(folded, "work \\(.*script.lua:7\\) [0-9]+ [0-9]+\n"));
  CHECK(has(report({"--diff", first, slower, "-f", "flamegraph", "-o", "-"}), "<html"));
}

TEST_CASE("a flame graph page is a recording, too", "[report]") {
  const Folder folder;
  const std::string raw = recorded(folder, "raw", script_of(10, 0.5)), page = folder.path("page.html");
  report({raw, "-o", page});
  const std::string again = folder.path("again.html");
  report({page, "-o", again});
  for (const Words& view : {Words{},
                            {"--tree"},
                            {"--function", "work"},
                            {"--source", "script.lua"},
                            {"--states"},
                            {"--to", "0.3"},
                            {"-f", "folded", "-o", "-"},
                            {"-f", "speedscope", "-o", "-"},
                            {"-f", "pprof", "-o", "-"},
                            {"-f", "flamegraph", "-o", "-", "--only", "work"}}) {
    const auto of = [&view](const std::string& file) {
      Words words = {file};
      words.insert(words.end(), view.begin(), view.end());
      return report(words);
    };
    INFO(fmt::format("{}", fmt::join(view, " ")));
    CHECK(of(page) == of(raw));
    CHECK(of(again) == of(raw));
  }
  // The recording comes out as it went in.
  const auto bytes_of = [](const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string extracted = folder.path("extracted.luaspy");
  report({again, "-o", extracted});
  CHECK(bytes_of(extracted) == bytes_of(raw));
  const std::string first = folder.path("first.luaspy");
  report({page, "-f", "raw", "--to", "0.3", "-o", first});
  CHECK(samples_in(first) > 0);
  CHECK(report({first, "-f", "folded", "-o", "-"}) == report({raw, "-f", "folded", "-o", "-", "--to", "0.3"}));
  CHECK(report({"--diff", page, raw}).find("page.html") != std::string::npos);
  const std::string part = folder.path("part.html");
  report({raw, "-o", part, "--to", "0.3"});
  check_refused({part}, 2, "carries no recording");
  // As record writes it, with and without the source.
  const std::string script = folder.write("again.lua", script_of(10, 0.4)), unread = folder.path("unread.html");
  Words command = target("debian-lua5.4-bookworm").command;
  command.push_back(script);
  const auto record = [&](const std::string& file, const Words& options) {
    Words words = {"record", "-o", file};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    REQUIRE(luaspy(words).status == 0);
  };
  record(page, {}), record(unread, {"--no-source"});
  ::unlink(script.c_str());
  CHECK(has(report({page}), "work \\(.*again.lua:7\\)"));
  CHECK(has(report({page, "--source", "again.lua"}), "local function work"));
  check_refused({unread, "--source", "again.lua"}, 2, "Cannot read .*again.lua: there is no such file");
}

TEST_CASE("a report has every view of a recording, and says why where it has none", "[report]") {
  const Folder folder;
  const std::string path = folder.write("jit.lua",
                                        "local function inner(n)\n  local x = 0\n  for i = 1, n do x = x + i % 7 end\n "
                                        " return x\nend\nlocal function outer()\n  local t = {}\n"
                                        "  for i = 1, 100 do t[i] = tostring(inner(1000)) end\n  return "
                                        "table.concat(t)\nend\nwhile os.clock() < 0.8 do outer() end\n");
  const std::string raw = folder.path("jit.luaspy");
  const Words command = lua({path}, luajit);
  REQUIRE(luaspy(record_raw(raw, command)).status == 0);
  const std::string overview = report({raw});
  INFO(overview);
  CHECK(has(overview, "samples of 1 thread"));
  CHECK(has(overview, "\n  spent in: "));
  for (const char* const locale : {"C", "C.UTF-8"}) {
    const Finished plain = run({"/usr/bin/env", std::string("LC_ALL=") + locale, luaspy_program, "report", raw});
    INFO(plain.out);
    CHECK(has(plain.out, "\n  spent in: "));
    CHECK(plain.out.find("\\x0a") == std::string::npos);
  }
  CHECK(has(overview, "inner \\(.*jit.lua:1\\)"));
  CHECK(has(overview, "inner \\(.*jit.lua:~?3\\)"));
  CHECK(has(report({raw, "--function", "inner"}), "Callers\n.*outer \\(.*jit.lua:6\\)"));
  CHECK(has(report({raw, "--function", "inn.r", "--by", "time"}), "own [0-9.]+ % \\([0-9.]+ s\\)"));
  const std::string tree = report({raw, "--tree", "--states", "--by-thread", "--min", "5"});
  INFO(tree);
  CHECK(has(tree, "[0-9.]+ +[0-9.]+ +.*outer \\(.*jit.lua:6\\)"));
  CHECK(has(tree, "[0-9.]+ +[0-9]+  machine code"));
  // By number: its name may still be that of the program that executed luajit.
  std::smatch thread;
  REQUIRE(std::regex_search(tree, thread, std::regex("100.0 +[0-9]+  ([0-9]+) [a-z]+\n")));
  const std::string source = report({raw, "--source", "jit.lua"});
  INFO(source);
  CHECK(has(source, "[0-9.]+ +[0-9.]+ +[0-9]+ +[0-9]+ +~?3    for i = 1, n do"));
  CHECK(has(source, "~: some of its samples"));
  const auto samples = [&](const Words& options) {
    Words words = {"report", raw, "-f", "folded", "-o", "-"};
    words.insert(words.end(), options.begin(), options.end());
    const Finished finished = luaspy(words);  // 11: no samples, possible in a short time if luaspy gets little CPU
    INFO(finished.err);
    REQUIRE((finished.status == 0 || finished.status == 11));
    std::int64_t sum = 0;
    for (const FoldedStack& stack : parse_folded(finished.out)) sum += stack.count;
    return sum;
  };
  const std::int64_t all = samples({});
  CHECK(samples({"--to", "0.3"}) + samples({"--from", "0.3"}) == all);
  CHECK(samples({"--from", "-0.2"}) < all);
  CHECK(samples({"--only", "inner"}) + samples({"--ignore", "inner"}) == all);
  CHECK(samples({"--thread", thread[1]}) == all);
  check_refused({raw, "--function", "iner"}, 2, "No function is called iner.*Similar names: .*inner");
  check_refused({raw, "--source", "other.lua"}, 2,
                "No sample is in a Lua file other.lua. Files with samples: .*jit.lua");
  check_refused({raw, "--thread", "nobody"}, 11,
                "no samples of a thread nobody. Its threads: " + thread[1].str() + " [a-z]+");
  check_refused({raw, "--from", "1000"}, 11, "no samples between --from and --to; it lasts");
  check_refused({raw, "--only", "nothing"}, 11, "--only and --ignore leave no sample");
  const auto on_terminal = [&](const std::string& environment) {
    return run({"script", "-qec",
                fmt::format("stty cols 60; env {} TERM=xterm '{}' report '{}'", environment, luaspy_program, raw),
                "/dev/null"})
        .out;
  };
  CHECK(has(on_terminal("-u NO_COLOR"), "\x1b\\[1;36m +%Own"));
  CHECK(on_terminal("NO_COLOR=1").find('\x1b') == std::string::npos);
  CHECK(overview.find('\x1b') == std::string::npos);
  check_refused({raw, "-f", "raw"}, 2, "is already");
  check_refused({raw, "-o", folder.path("jit.html.old")}, 2, "no format has the ending .old");
  check_refused({raw, "--tree", "-o", folder.path("tree.svg")}, 2, "are text: let the name of the file end in .txt");
  CHECK(report({raw, "-o", folder.path("it's.txt")}).empty());
  CHECK(read_file(folder.path("it's.txt")) == report({raw}));
  const Finished picture = luaspy({"report", raw, "-o", folder.path("it's.folded")});
  CHECK(picture.err.find("next: flamegraph.pl '") != std::string::npos);
  CHECK(picture.err.find("it'\\''s.folded'") != std::string::npos);
  CHECK(report({raw, "-o", folder.path("jit.svg")}).empty());
  CHECK(read_file(folder.path("jit.svg")).find("<svg ") != std::string::npos);
  check_refused({path}, 2, "This is nothing that luaspy reads");
  check_refused({folder.path("none")}, 2, "Cannot read .*none");
  check_refused({raw, "--tree", "-f", "folded"}, 2, "do not go together");
  check_refused({}, 2, "say which recording");
  check_refused({raw, "--by", "run"}, 2, "--by run needs --diff");
  ::unlink(path.c_str());
  CHECK(has(report({raw, "--source", "jit.lua"}), "inner"));  // the recording carries it
  const std::string elsewhere = folder.write("elsewhere.lua", "x = 1\n");
  CHECK(has(report({raw, "--source", "jit.lua", "--source-path", elsewhere}), "The file is not the one that ran"));
}

}  // namespace luaspy::live::live_report_test
