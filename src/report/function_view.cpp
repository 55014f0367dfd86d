#include "report/function_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/pattern.h"

namespace luaspy {
namespace {

// The Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, changed});
    }
  }
  return row.back();
}

// The most similar names.
std::string near_names(const FunctionTable& functions, const std::vector<Cost>& costs, std::string_view wanted) {
  constexpr std::size_t longest = 60, most = 3;
  std::map<std::string, std::size_t> names;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const std::string& name = functions.functions[i].name;
    if (costs[i].total != 0)
      names.emplace(name, distance(std::string_view(name).substr(0, longest), wanted.substr(0, longest)));
  }
  std::vector<std::pair<std::string, std::size_t>> order(names.begin(), names.end());
  std::ranges::stable_sort(order, {}, [](const auto& name) { return name.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), most); ++i)
    text += (i == 0 ? "" : ", ") + displayable(order[i].first, Charset::ascii, longest);
  return text;
}

std::vector<FunctionView::Relation> sorted(const std::map<std::optional<std::uint32_t>, std::int64_t>& costs) {
  std::vector<FunctionView::Relation> relations;
  for (const auto& [function, cost] : costs) relations.push_back({function, cost});
  std::ranges::stable_sort(relations, std::greater(), &FunctionView::Relation::cost);
  return relations;
}

}  // namespace

FunctionView function_view(const Profile& profile, const FunctionTable& functions, std::uint32_t function, By by) {
  FunctionView view;
  view.function = function;
  using Related = std::optional<std::uint32_t>;
  std::map<Related, std::int64_t> callers, callees;
  std::vector<Related> callers_here, callees_here;
  const auto add = [](std::vector<Related>& here, Related related) {
    if (std::ranges::find(here, related) == here.end()) here.push_back(related);
  };
  for (const auto& [id, amount] : profile.stack_counts()) {
    callers_here.clear(), callees_here.clear();
    int times = 0;
    Related outer;
    bool is_innermost = false;
    for (const FrameId frame : profile.stack(id)) {
      const std::uint32_t one = functions.of_frame[frame];
      if (outer == function) add(callees_here, one);
      if (one == function) ++times, add(callers_here, outer);
      is_innermost = one == function;
      outer = one;
    }
    const std::int64_t of_stack = cost(amount, by);
    if (times != 0) view.cost.total += of_stack;
    if (times > 1) view.recursive += of_stack;
    if (is_innermost) view.cost.own += of_stack;
    for (const Related caller : callers_here) callers[caller] += of_stack;
    for (const Related callee : callees_here) callees[callee] += of_stack;
  }
  view.callers = sorted(callers), view.callees = sorted(callees);
  return view;
}

Result<std::vector<std::uint32_t>> find_functions(const FunctionTable& functions, const std::vector<Cost>& costs,
                                                  const std::string& wanted) {
  std::vector<std::uint32_t> found;
  const auto collect = [&](const auto& matches) {
    if (!found.empty()) return;
    for (const std::uint32_t i : most_expensive(costs, functions)) {
      if (costs[i].total != 0 && matches(i)) found.push_back(i);
    }
  };
  collect([&](std::uint32_t i) { return functions.functions[i].name == wanted; });
  collect([&](std::uint32_t i) { return functions.texts[i] == wanted; });
  const Pattern pattern(wanted);
  collect([&](std::uint32_t i) { return pattern.found_in(functions.texts[i]); });
  collect([&](std::uint32_t i) { return functions.texts[i].find(wanted) != std::string::npos; });
  if (!found.empty()) return found;
  const std::string near = near_names(functions, costs, wanted);
  return Error{Cause::usage,
               fmt::format("No function is called {} or matches it.{}", displayable(wanted, Charset::ascii),
                           near.empty() ? "" : " Similar names: " + near + ".")};
}

std::string function_text(const Profile& profile, const FunctionTable& functions, const FunctionView& view,
                          const TextStyle& style) {
  const std::int64_t whole = total_cost(profile, style.by);
  std::string text = fmt::format("{}\n  own {:.1f} % ({}), total {:.1f} % ({})",
                                 style.paint(Ink::strong, shown(functions.texts[view.function], style)),
                                 percent(view.cost.own, whole), cost_text(view.cost.own, style),
                                 percent(view.cost.total, whole), cost_text(view.cost.total, style));
  if (view.recursive != 0)
    text += fmt::format("; calls itself in {:.1f} % of that", percent(view.recursive, view.cost.total));
  text += '\n';
  const auto row = [&](std::int64_t cost, const std::string& what) {
    text += fmt::format("    {:5.1f}   {:5.1f} {:>9}  {}\n", percent(cost, view.cost.total), percent(cost, whole),
                        cost_text(cost, style), what);
  };
  const auto table = [&](std::string_view related, const std::vector<FunctionView::Relation>& relations,
                         std::string_view nobody) {
    text += heading(fmt::format("    %Func  %Total {:>9}  {}", cost_heading(style), related), style);
    if (related == "Callees" && view.cost.own != 0) row(view.cost.own, "(its own)");
    for (std::size_t i = 0; i < relations.size(); ++i) {
      if (i == static_cast<std::size_t>(style.top)) {
        text += fmt::format("                             {} more (--top)\n", relations.size() - i);
        break;
      }
      const auto& [function, cost] = relations[i];
      row(cost, !function ? std::string(nobody)
                          : shown(functions.texts[*function], style) + (*function == view.function ? " (itself)" : ""));
    }
  };
  table("Callers", view.callers, "(none: it is the outermost)");
  table("Callees", view.callees, "");
  return text;
}

}  // namespace luaspy
