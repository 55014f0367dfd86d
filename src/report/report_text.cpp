#include "report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>

#include "base/tail_calls.h"
#include "profile/amount_text.h"
#include "profile/doing.h"
#include "profile/heap_text.h"

namespace luaspy {
namespace {

std::string table(const Profile& profile, const FunctionTable& functions, const TextStyle& style, std::string_view what,
                  const std::function<bool(const Frame&)>& has_row) {
  const std::vector<Cost> all = costs(profile, functions, style.by);
  const std::int64_t whole = total_cost(profile, style.by);
  std::string text = heading(fmt::format("{}  {}", cost_columns_head(style), what), style);
  int shown_rows = 0, more = 0;
  std::string note;
  for (const std::uint32_t function : most_expensive(all, functions)) {
    const Cost& of = all[function];
    if (!has_row(functions.functions[function]) || of.total == 0) continue;
    if (shown_rows == style.top) {
      ++more;
      continue;
    }
    ++shown_rows;
    text += fmt::format("{}  {}\n", cost_columns(of, whole, style), shown(functions.texts[function], style));
    if (functions.functions[function] == marker(std::string(tail_calls_name)))
      note = fmt::format("  {}: {}\n", tail_calls_name, tail_calls_meaning);
  }
  if (shown_rows == 0) return {};
  if (more != 0)
    text += fmt::format("{:{}}{} {} more (--top)\n", "", cost_columns_width(style) + 4,
                        style.charset == Charset::utf8 ? "…" : "...", more);
  return text + note;
}

// Below a row that cost `whole`: the functions that have most of it.
std::string costliest_text(const std::vector<Cost>& costs, const FunctionTable& functions, std::int64_t whole,
                           const TextStyle& style) {
  constexpr int most = 3;
  std::string text;
  int functions_shown = 0;
  for (const std::uint32_t function : most_expensive(costs, functions)) {
    if (costs[function].own == 0 || functions_shown++ == most) break;
    text += fmt::format("                     {:5.1f}  {}\n", percent(costs[function].own, whole),
                        shown(functions.texts[function], style));
  }
  return text;
}

}  // namespace

std::string functions_text(const Profile& profile, const TextStyle& style) {
  return table(profile, functions_of(profile, false), style, "Function (file:line)", [](const Frame&) { return true; });
}

std::string lines_text(const Profile& profile, const TextStyle& style) {
  return table(profile, functions_of(profile, true), style, "Line",
               [](const Frame& frame) { return frame.kind == Frame::Kind::lua && frame.line > 0; });
}

std::string states_text(const Profile& profile, const TextStyle& style) {
  const FunctionTable functions = functions_of(profile, false);
  const std::int64_t whole = total_cost(profile, style.by);
  const Doings all = doings_of(profile, style.by);
  std::map<std::uint32_t, Doings> by_function;
  for (const auto& [at, amount] : profile.counts()) {
    const Profile::Situation& situation = profile.situations()[at.situation];
    if (situation.stack == empty_stack) continue;
    Doings& of_function = by_function[functions.of_frame[profile.stacks().nodes()[situation.stack].frame]];
    of_function[doing_of(situation)] += cost(amount, style.by);
  }
  const std::vector<Doing> order = all.order();
  std::string text = heading(fmt::format("  Share {:>9}  State", cost_heading(style)), style), head = "   %Own";
  for (const Doing doing : order) {
    text += fmt::format("  {:5.1f} {:>9}  {}\n", percent(all[doing], whole), cost_text(all[doing], style),
                        names(doing).name);
    head += fmt::format(" {:>7}", names(doing).heading);
  }
  text += '\n' + heading(head + "  Function (file:line); shares of all", style);
  std::vector<std::pair<std::uint32_t, Doings>> rows(by_function.begin(), by_function.end());
  std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.second.sum(); });
  if (rows.size() > static_cast<std::size_t>(style.top)) rows.resize(static_cast<std::size_t>(style.top));
  for (const auto& [function, doings] : rows) {
    text += fmt::format("  {:5.1f}", percent(doings.sum(), whole));
    for (const Doing doing : order)
      text += doings[doing] == 0 ? "       -" : fmt::format(" {:7.1f}", percent(doings[doing], whole));
    text += "  " + shown(functions.texts[function], style) + "\n";
  }
  return text;
}

std::string heaps_text(const Profile& profile, const TextStyle& style) {
  struct Row {
    const HeapTracks::Of* of = nullptr;
    std::size_t number = 0;
    HeapSummary summary;
  };
  std::vector<Row> rows;
  for (const HeapTracks::Of& heap : profile.heaps.states()) {
    if (const std::optional<HeapSummary> summary = heap.track.summary(profile.about.duration_ns))
      rows.push_back({&heap, rows.size(), *summary});
  }
  if (rows.size() < 2) return {};
  std::ranges::stable_sort(rows, std::greater(), [](const Row& row) { return row.summary.last; });
  const auto bytes = [](std::int64_t amount) { return amount_text(amount, Unit::bytes); };
  std::string text = heading("     At end      Least       Most       Growth  Cycles/s  Lua heap; cycles: at least",
                             style);
  const std::size_t shown_rows = std::min(rows.size(), static_cast<std::size_t>(style.top));
  for (const Row& row : std::span(rows).first(shown_rows)) {
    const HeapSummary& heap = row.summary;
    text += fmt::format(" {:>10} {:>10} {:>10} {:>12} {:>9}  {} of process {}\n", bytes(heap.last), bytes(heap.least),
                        bytes(heap.most), heap.growth ? growth_text(*heap.growth) : "-",
                        heap.cycles ? fmt::format("{:.2f}", *heap.cycles) : "-", heap_name(profile.heaps, row.number),
                        row.of->state.pid);
  }
  if (rows.size() > shown_rows) text += fmt::format("{:59}{} more (--top)\n", "", rows.size() - shown_rows);
  return text;
}

std::optional<std::string> labels_text(const Profile& profile, std::string_view name, const TextStyle& style) {
  struct Value {
    std::map<StackId, Profile::Amount> stacks;
    std::int64_t cost = 0;
  };
  std::map<std::string_view, Value> values;
  bool any = false;
  for (const auto& [at, amount] : profile.counts()) {
    const Profile::Situation& situation = profile.situations()[at.situation];
    const std::string* const value = profile.labels().find(situation.labels, name);
    any |= value != nullptr;
    Value& of = values[value != nullptr ? *value : std::string_view("(none)")];
    of.stacks[situation.stack] += amount;
    of.cost += cost(amount, style.by);
  }
  if (!any) return std::nullopt;
  const FunctionTable functions = functions_of(profile, false);
  const std::int64_t whole = total_cost(profile, style.by);
  std::vector<std::pair<std::string_view, const Value*>> rows;
  for (const auto& [text, value] : values) rows.emplace_back(text, &value);
  std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.second->cost; });
  const std::size_t most = std::min(rows.size(), static_cast<std::size_t>(style.top));
  std::string text = heading(
      fmt::format("  Share {:>9}  {}, and what cost most in it", cost_heading(style), displayable(name, style.charset)),
      style);
  for (const auto& [value, of] : std::span(rows).first(most)) {
    text += fmt::format("  {:5.1f} {:>9}  {}\n", percent(of->cost, whole), cost_text(of->cost, style),
                        shown(std::string(value), style));
    text += costliest_text(costs(profile, functions, style.by, of->stacks), functions, of->cost, style);
  }
  if (rows.size() > most) text += fmt::format("                   {} more (--top)\n", rows.size() - most);
  return text;
}

std::string threads_text(const Profile& profile, const TextStyle& style) {
  const FunctionTable functions = functions_of(profile, false);
  const std::int64_t whole = total_cost(profile, style.by);
  struct Row {
    std::uint32_t thread = 0;
    std::int64_t cost = 0;
  };
  std::vector<Row> rows;
  for (std::uint32_t thread = 0; thread < profile.threads().size(); ++thread) {
    Row row = {thread};
    for (const auto& [id, amount] : profile.stack_counts(thread)) row.cost += cost(amount, style.by);
    if (row.cost != 0 || profile.sleepers().threads == 0) rows.push_back(row);
  }
  std::ranges::stable_sort(rows, std::greater(), &Row::cost);
  bool several = false;
  for (const ThreadInfo& thread : profile.threads())
    several |= std::pair(thread.pid, thread.program) !=
               std::pair(profile.threads().front().pid, profile.threads().front().program);
  const std::vector<Doings> doings = doings_by_thread(profile, style.by);
  std::string text = heading(fmt::format("  Share {:>9}  Thread, and what cost most in it", cost_heading(style)),
                             style);
  for (std::size_t i = 0; i < rows.size() && i < static_cast<std::size_t>(style.top); ++i) {
    const ThreadInfo& thread = profile.threads()[rows[i].thread];
    const bool of_time = profile.about.unit == Unit::nanoseconds;
    const std::string ran = of_time ? running_text(doings[rows[i].thread]) : "";
    text += fmt::format(
        "  {:5.1f} {:>9}  {} {}{}{}\n", percent(rows[i].cost, whole), cost_text(rows[i].cost, style), thread.tid,
        shown(thread.name, style),
        several ? fmt::format(" of process {} {}", thread.pid, displayable(thread.process, style.charset, 60)) : "",
        ran.empty() ? "" : ": " + ran);
    text += costliest_text(costs(profile, functions, style.by, rows[i].thread), functions, rows[i].cost, style);
  }
  if (rows.size() > static_cast<std::size_t>(style.top))
    text += fmt::format("                   {} more (--top)\n", rows.size() - static_cast<std::size_t>(style.top));
  return text;
}

}  // namespace luaspy
