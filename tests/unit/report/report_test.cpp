// The views of report: counts with recursion, the folding of trees, lines of files.

#include <catch2/catch.hpp>

#include "report/call_tree.h"
#include "report/function_view.h"
#include "report/source_listing.h"
#include "support/framed.h"

namespace luaspy::report_report_test {
namespace {

Frame lua(const std::string& name, int defined, int line, const std::string& file = "a.lua", bool near = false) {
  return {Frame::Kind::lua, name, file, defined, line, near};
}

class Samples {
 public:
  Samples& add(int count, const Stack& stack) {
    FramedSample sample;
    sample.stack = stack;
    for (int i = 0; i < count; ++i) add_framed(profile, {1, "one"}, {at_ += 10, 10}, sample);
    return *this;
  }
  Profile profile{false};

 private:
  std::int64_t at_ = 0;
};

const Frame root = lua("main chunk", 0, 30), f = lua("f", 10, 12), f_later = lua("f", 10, 14), g = lua("g", 20, 22),
            h = lua("h", 30, 33);

Samples recursive() {
  Samples samples;
  samples.add(4, {root, f, f_later, f}).add(3, {root, f, g, f_later, h}).add(2, {root, g}).add(1, {f});
  return samples;
}

FunctionView view_of(const Profile& profile, const FunctionTable& functions, const std::string& name) {
  return function_view(profile, functions,
                       find_functions(functions, costs(profile, functions, By::samples), name)->front(), By::samples);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string> tree_lines(const Profile& profile, double least) {
  const FunctionTable functions = functions_of(profile, false);
  return lines_of(call_tree_text(call_tree(profile, functions, By::samples), functions, least, {}));
}

}  // namespace

TEST_CASE("a sample counts once for a function, however often it is on the stack", "[unit]") {
  const Samples samples = recursive();
  const FunctionTable functions = functions_of(samples.profile, false);
  const FunctionView view = view_of(samples.profile, functions, "f");
  CHECK(view.cost.total == 8);
  CHECK(view.cost.own == 5);
  CHECK(view.recursive == 7);
  const std::vector<Cost> all = costs(samples.profile, functions, By::samples);
  CHECK(all[view.function].total == 8);
  CHECK(all[view.function].own == 5);
  // f is called by the main chunk (7), itself (4), g (3), no function (1); it calls itself (4), g
  // (3), h (3).
  const auto cost_of = [&](const std::vector<FunctionView::Relation>& relations, const std::string& name) {
    for (const auto& [function, cost] : relations) {
      if (function ? functions.functions[*function].name == name : name.empty()) return cost;
    }
    return std::int64_t{-1};
  };
  REQUIRE(view.callers.size() == 4);
  CHECK(cost_of(view.callers, "main chunk") == 7);
  CHECK(cost_of(view.callers, "f") == 4);
  CHECK(cost_of(view.callers, "g") == 3);
  CHECK(cost_of(view.callers, "") == 1);
  REQUIRE(view.callees.size() == 3);
  CHECK(cost_of(view.callees, "f") == 4);
  CHECK(cost_of(view.callees, "g") == 3);
  CHECK(cost_of(view.callees, "h") == 3);
  CHECK(costs(samples.profile, functions, By::weight)[view.function].total == 80);
}

TEST_CASE("functions are found by name, then by text, then by pattern", "[unit]") {
  Samples samples;
  samples.add(1, {lua("get", 1, 2), lua("get_all", 3, 4), lua("a.b", 5, 6)}).add(5, {lua("get", 9, 9, "b.lua")});
  const FunctionTable functions = functions_of(samples.profile, false);
  const std::vector<Cost> all = costs(samples.profile, functions, By::samples);
  const auto found = [&](const std::string& name) {
    std::string names;
    const auto result = find_functions(functions, all, name);
    if (!result) return result.error().text;
    for (const std::uint32_t i : *result) names += functions.texts[i] + ";";
    return names;
  };
  CHECK(found("get") == "get (b.lua:9);get (a.lua:1);");
  CHECK(found("get (a.lua:1)") == "get (a.lua:1);");
  CHECK(found("get_.*") == "get_all (a.lua:3);");
  CHECK(found("b.lua") == "get (b.lua:9);");
  CHECK(found("(a.lua:5") == "a.b (a.lua:5);");  // not a regular expression
  CHECK(found("get_al") == "get_all (a.lua:3);");
  CHECK(found("gett").find("Similar names: get") != std::string::npos);
}

TEST_CASE("a tree has a line for what branches or costs, and sums up the rest", "[unit]") {
  Samples samples;
  const Frame main = {Frame::Kind::native, "main", "lua", 0, 0}, start = {Frame::Kind::native, "_start", "lua", 0, 0};
  samples.add(60, {start, main, root, f, g})
      .add(30, {start, main, root, f})
      .add(1, {start, main, root, f, h})
      .add(8, {start, main, root, g})
      .add(1, {start, main, root, lua("i", 40, 41), lua("j", 50, 51), h});
  CHECK(tree_lines(samples.profile, 5) ==
        std::vector<std::string>{
            " %Total    %Own  Function (file:line)", "  100.0     0.0  _start (lua) → main (lua) → main chunk (a.lua)",
            "   91.0    30.0  ├ f (a.lua:10)", "   60.0    60.0  │ ├ g (a.lua:20)", "    1.0          │ └ … 1 more",
            "    8.0     8.0  ├ g (a.lua:20)", "    1.0          └ … 1 more"});
  const std::vector<std::string> all = tree_lines(samples.profile, 0);
  REQUIRE(all.size() == 7);
  CHECK(all[4] == "    1.0     1.0  │ └ h (a.lua:30)");
  CHECK(all[6] == "    1.0     1.0  └ i (a.lua:40) → j (a.lua:50) → h (a.lua:30)");
}

TEST_CASE("a deep recursion is a tree that can be printed", "[unit]") {
  Samples deep, branching;
  Stack stack = {root};
  for (int i = 0; i < 20'000; ++i) stack.push_back(i % 2 == 0 ? f : g);
  deep.add(1, stack);
  const std::vector<std::string> lines = tree_lines(deep.profile, 1);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] == "  100.0   100.0  main chunk (a.lua) → … 19998 … → f (a.lua:10) → g (a.lua:20)");
  stack.resize(400);
  for (; stack.size() > 1; stack.pop_back()) branching.add(1, stack);
  for (const std::string& line : tree_lines(branching.profile, 0)) CHECK(columns(line) < 160);
}

TEST_CASE("lines of a file are counted where they run", "[unit]") {
  Samples samples;
  const Frame gsub = {Frame::Kind::c, "string.gsub", "lua", 0, 0};
  samples.add(5, {root, f})
      .add(3, {root, f_later, gsub})
      .add(2, {root, f, f, f})
      .add(1, {root, lua("x", 1, 12, "b.lua")})
      .add(1, {root, lua("f", 10, 14, "a.lua", true)})
      .add(1, {root, lua("unknown", 10, 0)});
  const std::map<int, LineCost> lines = line_costs(samples.profile, "a.lua", By::samples);
  REQUIRE(lines.size() == 3);
  CHECK(lines.at(30).cost.total == 13);
  CHECK(lines.at(30).cost.own == 0);
  CHECK(lines.at(12).cost.total == 7);
  CHECK(lines.at(12).cost.own == 7);
  CHECK(lines.at(14).cost.total == 4);
  CHECK(lines.at(14).cost.own == 1);
  CHECK(lines.at(14).is_near);
  CHECK(!lines.at(12).is_near);
  CHECK(*find_source(samples.profile, "b.lua") == "b.lua");
  CHECK(*find_source(samples.profile, "/srv/b.lua") == "b.lua");
  CHECK(!find_source(samples.profile, "lua"));
}

}  // namespace luaspy::report_report_test
