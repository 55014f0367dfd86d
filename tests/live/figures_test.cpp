// Each figure that record says at its end is one that report says of the file: both are one computation, of the
// same samples.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "support/harness.h"

namespace luaspy::live::figures_test {
namespace {

struct Figure {
  std::string label;  // the words before it, back to the figure before, and those behind it
  double number = 0;
};

std::vector<Figure> figures_of(const std::string& text) {
  static const std::regex number("[0-9]+(\\.[0-9]+)?");
  std::vector<Figure> figures;
  std::string::const_iterator from = text.begin();
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
    figures.push_back({std::string(from, (*at)[0].first), std::stod(at->str())});
    from = (*at)[0].second;
  }
  return figures;
}

// The lines about the recording: from the one with the number of samples, or a doubt, up to what `ends` them.
std::string summary_of(const std::string& text, const std::string& before, const std::regex& ends) {
  std::string summary;
  std::istringstream lines(text);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!inside && line.starts_with(before) && std::regex_search(line, std::regex("; looked |: doubtful: ")))
      inside = true, line.erase(0, before.size());
    if (inside && std::regex_search(line, ends)) break;
    if (inside) summary += line + '\n';
  }
  return summary;
}

// Rows "  50.0    66.7  work (a.lua:10)", as far as record shows them: shares by function.
std::map<std::string, std::string> shares_of(const std::string& text, const std::regex& row) {
  std::map<std::string, std::string> shares;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, row)) shares.try_emplace(match[match.size() - 1], match[1]);
  }
  return shares;
}

void check_agreement(const Words& options, const Words& command, const std::string& file) {
  Words words = Words{"record", "-r", "300", "-o", file} + options;
  words.emplace_back("--");
  const Finished recorded = luaspy(words + command);
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  const std::string said = summary_of(recorded.err, "luaspy: ", std::regex("^  (the target|written|process [0-9]+ )"));
  const Finished reported = luaspy({"report", file, "--top", "1000"});
  INFO(reported.out);
  std::string name;
  for (const std::string& word : command) name += (name.empty() ? "" : " ") + word;
  const std::string head = summary_of(reported.out, reported.out.substr(0, reported.out.find(": ") + 2),
                                      std::regex("%Own|^$|^ +At end"));
  const std::vector<Figure> ones = figures_of(said), others = figures_of(head);
  CHECK(ones.size() >= 12);
  REQUIRE(ones.size() == others.size());
  for (std::size_t i = 0; i < ones.size(); ++i) {
    INFO(ones[i].label << ones[i].number << " and " << others[i].label << others[i].number);
    CHECK(ones[i].label == others[i].label);
    CHECK(ones[i].number == others[i].number);
  }
  const auto hottest = shares_of(recorded.err, std::regex(" +([0-9.]+ +[0-9.]+)  (\\S.*)"));
  CHECK(!hottest.empty());
  for (const auto& [function, shares] : hottest) {
    INFO(function);
    CHECK(
        std::regex_search(reported.out, std::regex(" *" + std::regex_replace(shares, std::regex(" +"), " +") + " .*")));
    CHECK(reported.out.find(function) != std::string::npos);
  }
  // What it was spent in.
  const Finished states = luaspy({"report", file, "--states"});
  INFO(states.out);
  std::map<std::string, std::string> in_states = shares_of(states.out.substr(0, states.out.find("\n\n")),
                                                           std::regex(" +([0-9.]+) +[0-9]+  (\\S.*)")),
                                     spent;
  std::smatch match;
  REQUIRE(std::regex_search(said, match, std::regex("  spent in: ([^\n]*)\n")));
  const std::string list = match[1];
  static const std::regex part("([^,]+) ([0-9.]+) %(?:, )?");
  for (std::sregex_iterator at(list.begin(), list.end(), part), end; at != end; ++at) spent[(*at)[1]] = (*at)[2];
  CHECK(spent == in_states);
  // How many samples and threads.
  REQUIRE(std::regex_search(said, match, std::regex("([0-9]+) samples? of ([0-9]+) thread")));
  std::int64_t samples = 0;
  const Finished folded = luaspy({"report", file, "-f", "folded", "-o", "-"});
  for (const FoldedStack& stack : parse_folded(folded.out)) samples += stack.count;
  CHECK(samples == std::stoll(match[1]));
}

}  // namespace

TEST_CASE("each figure that record says is one that report says", "[figures]") {
  const Folder folder;
  const std::string child = folder.path("child.lua"), parent = folder.path("parent.lua"),
                    traced = folder.path("traced.lua");
  std::ofstream(child)
      << "local t = {} local stop = os.time() + 2 while os.time() < stop do for i = 1, 1000 do t[i] = {i} end end";
  std::string lua_words;
  for (const std::string& word : lua({})) lua_words += word + " ";
  std::ofstream(parent) << "local p = io.popen('" << lua_words << child << "', 'w') p:close() print(1)";
  // Traces that are left at each turn, and new ones.
  std::ofstream(traced) << "local stop = os.time() + 2 local n = 0 while os.time() < stop do local f = "
                           "loadstring('local s = 0 for i = 1, 300 do "
                           "if i % 7 == ' .. n % 7 .. ' then s = s + #tostring(i) else s = s + i end end return s') "
                           "f() f() n = n + 1 end";
  for (const char* const ending : {".luaspy", ".html"}) {
    check_agreement({"-s", "--idle"}, lua({parent}), folder.path(std::string("idle") + ending));
    check_agreement({"-d", "1"}, lua({traced}, luajit), folder.path(std::string("traced") + ending));
  }
  check_agreement({"-d", "1", "-s"}, lua({parent}), folder.path("asleep.luaspy"));
}

}  // namespace luaspy::live::figures_test
