#include "report/suspended_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>

#include "events/suspended.h"
#include "profile/suspended_profile.h"

namespace luaspy {
namespace {

constexpr std::string_view not_known = "(not known)";

// What is added up in a row of a table. Several stacks may be in one; `most` is a bound then: they may have had most at
// different times.
struct Sum {
  double average = 0;
  std::int64_t most = 0, longest_ns = 0;
  int stacks = 0;
  void add(const SuspendedRow& row) {
    average += row.average;
    most += row.most;
    ++stacks;
    longest_ns = std::max(longest_ns, row.longest_ns);
  }
};

std::string columns(const Sum& sum) {
  const std::string longest = fmt::format("{:.1f} s", static_cast<double>(sum.longest_ns) / 1e9);
  const std::string most = fmt::format("{}{}", sum.stacks > 1 ? "<= " : "", sum.most);
  return fmt::format("  {:9.1f} {:>8} {:>11}", sum.average, most, longest);
}

// From the innermost Lua function on: what is inside of it is coroutine.yield, or what the host does to wait.
std::string place_text(const Profile& profile, StackId stack) {
  std::string inside;
  for (; stack != empty_stack; stack = profile.stacks().nodes()[stack].outer) {
    const Frame& frame = profile.frames()[profile.stacks().nodes()[stack].frame];
    const std::string text = describe(frame, true);
    if (frame.kind == Frame::Kind::lua) return inside.empty() ? text : text + ", in " + inside;
    if (inside.empty()) inside = text;
  }
  return inside.empty() ? std::string(not_known) : inside;
}

std::string table(const std::map<std::string, Sum>& sums, std::string_view what, const TextStyle& style) {
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.second.average; });
  const std::size_t most = std::min(rows.size(), static_cast<std::size_t>(style.top));
  std::string text = heading(fmt::format("    Average   Most at    There in\n"
                                         "      count      once   each look  {}",
                                         what),
                             style);
  for (const auto& [name, sum] : std::span(rows).first(most))
    text += fmt::format("{}  {}\n", columns(sum), shown(name, style));
  if (rows.size() > most) text += fmt::format("{:34}{} more (--top)\n", "", rows.size() - most);
  return text;
}

}  // namespace

std::vector<SuspendedRow> suspended_rows(const Profile& profile) {
  std::map<SuspendedCounts::Place, std::int64_t> weights;
  for (const auto& [at, amount] : profile.counts()) {
    const Profile::Situation& situation = profile.situations()[at.situation];
    weights[{situation.stack, situation.labels}] += amount.weight;
  }
  const double looked_ns = static_cast<double>(std::max<std::int64_t>(profile.suspended.looked_ns, 1));
  std::vector<SuspendedRow> rows;
  for (const auto& [place, weight] : weights) {
    SuspendedRow& row = rows.emplace_back();
    const std::string* const began = profile.labels().find(place.labels, suspended_label);
    if (began != nullptr) row.began = *began;
    row.stack = place.stack;
    row.average = static_cast<double>(weight) / looked_ns;
    const auto extremes = profile.suspended.places.find(place);
    if (extremes == profile.suspended.places.end()) continue;
    row.most = extremes->second.most, row.longest_ns = extremes->second.longest_ns;
  }
  std::ranges::stable_sort(rows, std::greater(), &SuspendedRow::average);
  return rows;
}

std::string suspended_text(const Profile& profile, const TextStyle& style) {
  std::string text = fmt::format("Suspended coroutines: {}\n", suspended_summary(profile));
  std::map<std::string, Sum> places, begins;
  for (const SuspendedRow& row : suspended_rows(profile)) {
    places[place_text(profile, row.stack)].add(row);
    begins[row.began.empty() ? std::string(not_known) : row.began].add(row);
  }
  if (places.empty()) return text;
  return text + table(places, "Where they wait (file:line)", style) + '\n' +
         table(begins, "Function that they began with", style);
}

}  // namespace luaspy
