// Which functions of two recordings are the same, and that text, page and folded stacks of a difference agree on it,
// box by box.

#include "report/function_matching.h"

#include <unistd.h>

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "output/raw.h"
#include "report/report.h"
#include "support/sample_profile.h"

namespace luaspy::function_matching_test {
namespace {

Profile profile_of(const std::vector<Frame>& functions) {
  Profile profile;
  const std::uint32_t thread = profile.index_of({1, "main"});
  for (const Frame& function : functions)
    profile.add(thread, {}, Sample(), profile.stacks().intern({empty_stack, profile.stacks().intern(function)}));
  return profile;
}

std::vector<std::string> texts_of(const Profile& profile, bool lines = false) {
  std::vector<std::string> texts;
  for (const Frame& frame : profile.frames()) texts.push_back(describe(frame, lines));
  return texts;
}

using Texts = std::vector<std::string>;

struct Recorded {
  std::vector<Frame> functions;  // called by the main chunk
  std::vector<int> samples;
};

// Of the file a.lua, whose main chunk calls all of them.
std::string recording(const Recorded& of) {
  EventTables tables;
  const ThreadId thread = tables.threads.intern({1, "main", 1, "lua"});
  std::ostringstream out;
  RawWriter writer(tables, Unit::nanoseconds, out);
  const StackId chunk = tables.stacks.intern({empty_stack, tables.stacks.intern(lua("main chunk", "a.lua", 0, 90))});
  std::int64_t at = 0;
  constexpr int rounds = 40;  // so that they are in all parts of the time
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < of.functions.size(); ++i) {
      Sample sample;
      sample.stack = tables.stacks.intern({chunk, tables.stacks.intern(of.functions[i])});
      for (int n = 0; n < of.samples[i]; ++n) writer.sample(thread, {at += 1'000'000, 1'000'000}, sample);
    }
  }
  Metadata about;
  about.duration_ns = at, about.complete = true;
  writer.about(about);
  writer.flush();
  return out.str();
}

std::string bytes_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// By function: shares before and after, in percent.
using Shares = std::map<std::string, std::pair<double, double>>;

// Rows as "      50.0      25.0      -25.0 ±3.5  smaller share -50 %  f (a.lua:1) → f (a.lua:4)"; the function as it is
// after, unless it is only before.
Shares shares_of_text(const std::string& text) {
  Shares shares;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    double before = 0, after = 0;
    if (!(words >> before >> after) || line.find('(') == std::string::npos) continue;
    const std::size_t arrow = line.find(" → ");
    std::size_t begin = line.rfind("  ") + 2;
    if (arrow != std::string::npos) begin = arrow + std::string_view(" → ").size();
    shares[line.substr(begin)] = {before, after};
  }
  return shares;
}

Shares in_percent(std::map<std::string, std::pair<double, double>> own) {
  double before = 0, after = 0;
  for (const auto& [name, of] : own) before += of.first, after += of.second;
  for (auto& [name, of] : own) of = {100 * of.first / before, 100 * of.second / after};
  return own;
}

Shares shares_of_folded(const std::string& text) {
  Shares own;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t second = line.rfind(' '), first = line.rfind(' ', second - 1);
    const std::string stack = line.substr(0, first);
    auto& [before, after] = own[stack.substr(stack.rfind(';') + 1)];
    before += std::stod(line.substr(first)), after += std::stod(line.substr(second));
  }
  return in_percent(own);
}

Shares shares_of_page(const nlohmann::json& page) {
  Shares own;
  constexpr std::size_t run_width = 5;
  for (std::size_t set = 0; set < 2; ++set) {
    for (const auto& thread : page.at("sets").at(set).at("threads")) {
      const auto runs = thread.at("runs").get<std::vector<std::int64_t>>();
      for (std::size_t i = 0; i < runs.size(); i += run_width) {
        const std::size_t frame = page.at("nodes").at("frame").at(static_cast<std::size_t>(runs[i])).get<std::size_t>();
        auto& [before, after] = own[page.at("strings").at(page.at("frames").at("text").at(frame).get<std::size_t>())];
        (set == 0 ? before : after) += static_cast<double>(runs[i + 2]);
      }
    }
  }
  return in_percent(own);
}

// Of all boxes, which are as wide as after.
Shares shares_of_picture(const std::string& text) {
  Shares shares;
  static const std::regex title("<title>(.*): ([0-9.]+) %, .*, before ([0-9.]+) %; itself");
  for (std::sregex_iterator at(text.begin(), text.end(), title), end; at != end; ++at)
    shares[(*at)[1]] = {std::stod((*at)[3]), std::stod((*at)[2])};
  return shares;
}

Shares shares_of_speedscope(const nlohmann::json& file) {
  Shares own;
  for (const auto& profile : file.at("profiles")) {
    const bool is_before = profile.at("name") == "before: main (thread 1)";
    CHECK((is_before || profile.at("name") == "after: main (thread 1)"));
    for (std::size_t i = 0; i < profile.at("samples").size(); ++i) {
      const std::size_t leaf = profile.at("samples").at(i).back().get<std::size_t>();
      auto& [before, after] = own[file.at("shared").at("frames").at(leaf).at("name")];
      (is_before ? before : after) += profile.at("weights").at(i).get<double>();
    }
  }
  return in_percent(own);
}

nlohmann::json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t at = page.find(begin);
  REQUIRE(at != std::string::npos);
  return nlohmann::json::parse(page.substr(at + begin.size(), page.find("</script>", at) - at - begin.size()));
}

void check_same(const Shares& found, const Shares& expected) {
  CHECK(found.size() == expected.size());
  for (const auto& [name, of] : expected) {
    INFO(name);
    REQUIRE(found.contains(name));
    CHECK(std::abs(found.at(name).first - of.first) < 0.1);
    CHECK(std::abs(found.at(name).second - of.second) < 0.1);
  }
}

}  // namespace

TEST_CASE("text, page and folded stacks of a difference agree box by box, wherever functions are defined", "[unit]") {
  // Three lines were put in front, `parse` went and `emit` came; two of the unnamed ones are left.
  const Recorded before = {
      {lua("render", "a.lua", 1, 2), lua("parse", "a.lua", 10, 11), lua("function", "a.lua", 20, 21),
       lua("function", "a.lua", 23, 24), lua("function", "a.lua", 30, 31)},
      {80, 4, 6, 3, 7}};
  const Recorded after = {{lua("render", "a.lua", 4, 5), lua("emit", "a.lua", 60, 61), lua("function", "a.lua", 23, 24),
                           lua("function", "a.lua", 33, 34)},
                          {30, 50, 6, 14}};
  std::string folder = "/tmp/luaspy-test-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/before.luaspy", std::ios::binary) << recording(before);
  std::ofstream(folder + "/after.luaspy", std::ios::binary) << recording(after);
  ReportOptions options;
  options.diff = {folder + "/before.luaspy", folder + "/after.luaspy"};
  options.top = 100;
  for (const char* const name : {"/diff.txt", "/diff.folded", "/diff.html", "/diff.svg", "/diff.json"}) {
    options.output = folder + name;
    REQUIRE(report(options));
  }
  const std::string text = bytes_of(folder + "/diff.txt");
  INFO(text);
  const Shares expected = {{"render (a.lua:4)", {80, 30}},   {"parse (a.lua:10)", {4, 0}},
                           {"emit (a.lua:60)", {0, 50}},     {"function (a.lua:23)", {6, 6}},
                           {"function (a.lua:33)", {7, 14}}, {"function [before] (a.lua:23)", {3, 0}}};
  Shares in_text = expected;  // which shows the text that it had
  in_text.erase("function [before] (a.lua:23)");
  in_text["function (a.lua:23)"] = {3, 0};
  CHECK(text.find("render (a.lua:1) → render (a.lua:4)") != std::string::npos);
  CHECK(text.find("function (a.lua:30) → function (a.lua:33)") != std::string::npos);
  check_same(shares_of_folded(bytes_of(folder + "/diff.folded")), expected);
  const nlohmann::json page = data_of(bytes_of(folder + "/diff.html"));
  check_same(shares_of_page(page), expected);
  check_same(shares_of_picture(bytes_of(folder + "/diff.svg")), {{"main chunk (a.lua)", {100, 100}},
                                                                 {"render (a.lua:4)", {80, 30}},
                                                                 {"emit (a.lua:60)", {0, 50}},
                                                                 {"function (a.lua:23)", {6, 6}},
                                                                 {"function (a.lua:33)", {7, 14}},
                                                                 {"all", {100, 100}}});
  check_same(shares_of_speedscope(nlohmann::json::parse(bytes_of(folder + "/diff.json"))), expected);
  Shares of_text = shares_of_text(text);
  CHECK(of_text.size() + 1 == expected.size());  // two rows read function (a.lua:23): of one before, of one after
  of_text.erase("function (a.lua:23)");
  for (const auto& [name, of] : of_text) CHECK(std::abs(of.first - expected.at(name).first) < 0.1);
  // What was where is said on the page, too.
  std::map<std::string, std::string> was;
  for (std::size_t i = 0; i < page.at("frames").at("was").size(); ++i) {
    const auto string = [&](const char* column) {
      return page.at("strings").at(page.at("frames").at(column).at(i).get<std::size_t>()).get<std::string>();
    };
    if (!string("was").empty()) was[string("text")] = string("was");
  }
  CHECK(was == std::map<std::string, std::string>{{"render (a.lua:4)", "render (a.lua:1)"},
                                                  {"function (a.lua:23)", "function (a.lua:20)"},
                                                  {"function (a.lua:33)", "function (a.lua:30)"},
                                                  {"function [before] (a.lua:23)", "function (a.lua:23)"}});
  std::filesystem::remove_all(folder);
}

TEST_CASE("a function of the same name and file is the same, and its current line moves with it", "[unit]") {
  Profile before = profile_of({lua("main chunk", "a.lua", 0, 50), lua("f", "a.lua", 10, 14), lua("g", "a.lua", 20, 0)});
  const Profile after = profile_of(
      {lua("main chunk", "a.lua", 0, 60), lua("f", "a.lua", 110, 117), lua("g", "a.lua", 5, 0)});
  const FunctionMatching matching = match_functions(before, after);
  CHECK(texts_of(before) == Texts{"main chunk (a.lua)", "f (a.lua:110)", "g (a.lua:5)"});
  CHECK(texts_of(before, true)[1] == "f (a.lua:114)");
  CHECK(matching.moved ==
        std::map<std::string, std::string>{{"f (a.lua:110)", "f (a.lua:10)"}, {"g (a.lua:5)", "g (a.lua:20)"}});
  CHECK(matching.ambiguous.empty());
}

TEST_CASE("of several functions of a name the nearest is the same, and that is told", "[unit]") {
  Profile before = profile_of({lua("new", "a.lua", 10, 0), lua("new", "a.lua", 50, 0), lua("new", "a.lua", 90, 0)});
  const Profile after = profile_of({lua("new", "a.lua", 13, 0), lua("new", "a.lua", 93, 0)});
  const FunctionMatching matching = match_functions(before, after);
  CHECK(texts_of(before) == Texts{"new (a.lua:13)", "new (a.lua:50)", "new (a.lua:93)"});
  CHECK(matching.ambiguous == Texts{"`new` in a.lua: 3 before and 2 after, matched by the nearest lines."});
}

TEST_CASE("functions around it say how far one has moved", "[unit]") {
  // Ten lines were put in before line 30. Nothing is nearer than the one that only has the line of another one now.
  Profile before = profile_of({lua("top", "a.lua", 1, 0), lua("function", "a.lua", 10, 0), lua("low", "a.lua", 30, 0),
                               lua("function", "a.lua", 40, 0), lua("function", "a.lua", 50, 0),
                               lua("renamed", "a.lua", 70, 0)});
  const Profile after = profile_of({lua("top", "a.lua", 1, 0), lua("function", "a.lua", 10, 0),
                                    lua("low", "a.lua", 40, 0), lua("function", "a.lua", 50, 0),
                                    lua("other", "a.lua", 80, 0)});
  const FunctionMatching matching = match_functions(before, after);
  CHECK(texts_of(before) == Texts{"top (a.lua:1)", "function (a.lua:10)", "low (a.lua:40)", "function (a.lua:50)",
                                  "function [before] (a.lua:50)", "other (a.lua:80)"});
  CHECK(matching.ambiguous.empty());
}

TEST_CASE("an unnamed function far away is another one; a near one is taken for the same, and that is told", "[unit]") {
  Profile before = profile_of({lua("function", "a.lua", 10, 0), lua("function", "b.lua", 10, 0)});
  const Profile after = profile_of({lua("function", "a.lua", 300, 0), lua("function", "b.lua", 14, 0)});
  const FunctionMatching matching = match_functions(before, after);
  CHECK(texts_of(before) == Texts{"function (a.lua:10)", "function (b.lua:14)"});
  CHECK(matching.ambiguous == Texts{"The function of b.lua on line 14 is taken for the one that was on line 10."});
}

TEST_CASE("as many functions of one name as a recording may have are matched at once", "[unit]") {
  std::vector<Frame> ones, others;
  for (int i = 1; i <= 30'000; ++i)
    ones.push_back(lua("function", "a.lua", 2 * i, 0)), others.push_back(lua("function", "a.lua", 3 * i, 0));
  Profile before = profile_of(ones);
  const FunctionMatching matching = match_functions(before, profile_of(others));
  CHECK(matching.moved.empty());  // only equal lines are: each sixth
}

}  // namespace luaspy::function_matching_test
