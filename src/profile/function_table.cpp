#include "profile/function_table.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace luaspy {

FunctionTable functions_of(const Profile& profile, bool lines) {
  FunctionTable table;
  std::unordered_map<std::string, std::uint32_t> known;
  for (const Frame& frame : profile.frames()) {
    std::string text = describe(frame, lines);
    const auto [place, added] = known.emplace(text, static_cast<std::uint32_t>(table.functions.size()));
    if (added) {
      table.functions.push_back(frame);
      if (!lines) table.functions.back().line = 0, table.functions.back().line_is_near = false;
      table.texts.push_back(std::move(text));
    }
    table.of_frame.push_back(place->second);
  }
  return table;
}

std::vector<Cost> costs(const Profile& profile, const FunctionTable& functions, By by,
                        std::optional<std::uint32_t> thread) {
  std::vector<Cost> costs(functions.functions.size());
  std::vector<std::size_t> counted(costs.size());  // by function: number of the last stack counted for it, from 1
  std::size_t number = 0;
  for (const auto& [id, amount] : profile.stack_counts(thread)) {
    ++number;
    const std::int64_t of_stack = cost(amount, by);
    const std::vector<Profile::FrameId> frames = profile.stack(id);
    for (const Profile::FrameId frame : frames) {
      const std::uint32_t function = functions.of_frame[frame];
      if (std::exchange(counted[function], number) != number) costs[function].total += of_stack;
    }
    if (!frames.empty()) costs[functions.of_frame[frames.back()]].own += of_stack;
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

std::vector<std::uint32_t> most_expensive(const std::vector<Cost>& costs) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(costs[a].own, costs[a].total) > std::tie(costs[b].own, costs[b].total);
  });
  return order;
}

int line_of(const Frame& frame) { return frame.line > 0 ? frame.line : frame.line_defined; }

}  // namespace luaspy
