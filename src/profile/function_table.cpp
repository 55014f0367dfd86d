#include "profile/function_table.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace luaspy {

FunctionTable functions_of(const Profile& profile, bool lines, Mode mode) {
  FunctionTable table;
  std::unordered_map<std::string, std::uint32_t> known;
  const auto add = [&](const Frame& frame) {
    std::string text = describe(frame, lines);
    const auto [place, added] = known.emplace(text, static_cast<std::uint32_t>(table.functions.size()));
    if (added) {
      table.functions.push_back(frame);
      if (!lines) table.functions.back().line = 0, table.functions.back().line_is_near = false;
      table.texts.push_back(std::move(text));
    }
    return place->second;
  };
  for (const Frame& frame : profile.frames())
    table.of_frame.add(shows(mode, frame) ? add(frame) : FunctionTable::not_shown);
  if (std::ranges::find(table.of_frame, FunctionTable::not_shown) != table.of_frame.end())
    table.nothing = add(nothing_shown(mode));
  return table;
}

std::vector<Cost> costs(const Profile& profile, const FunctionTable& functions, By by,
                        std::optional<std::uint32_t> thread) {
  return costs(profile, functions, by, profile.stack_counts(thread));
}

std::vector<Cost> costs(const Profile& profile, const FunctionTable& functions, By by,
                        const std::map<StackId, Profile::Amount>& stacks) {
  std::vector<Cost> costs(functions.functions.size());
  std::vector<std::size_t> counted(costs.size());  // by function: number of the last stack counted for it, from 1
  std::size_t number = 0;
  for (const auto& [id, amount] : stacks) {
    ++number;
    const std::int64_t of_stack = cost(amount, by);
    const double squares = amount.squares;
    const std::vector<FrameId> frames = profile.stack(id);
    std::uint32_t innermost = FunctionTable::not_shown;
    const auto count = [&](std::uint32_t function) {
      innermost = function;
      if (std::exchange(counted[function], number) != number) {
        costs[function].total += of_stack;
        costs[function].total_squares += squares;
      }
    };
    for (const FrameId frame : frames) {
      if (functions.of_frame[frame] != FunctionTable::not_shown) count(functions.of_frame[frame]);
    }
    if (frames.empty()) continue;
    if (innermost == FunctionTable::not_shown) count(functions.nothing);
    costs[innermost].own += of_stack;
    costs[innermost].own_squares += squares;
  }
  return costs;
}

std::int64_t cost(const Profile::Amount& amount, By by) { return by == By::samples ? amount.samples : amount.weight; }
std::int64_t total_cost(const Profile& profile, By by) {
  return by == By::samples ? profile.samples() : profile.weight();
}
double percent(std::int64_t part, std::int64_t of) {
  return of == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(of);
}

std::vector<std::uint32_t> most_expensive(const std::vector<Cost>& costs, const FunctionTable& functions) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t function) {
    const Cost& of = costs[function];
    return std::tuple(of.own, !is_carrier(functions.functions[function], of.own != 0), of.total);
  };
  std::ranges::stable_sort(order, std::greater(), key);
  return order;
}

int line_of(const Frame& frame) { return frame.line > 0 ? frame.line : frame.line_defined; }

}  // namespace luaspy
