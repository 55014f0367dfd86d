#include "top/top_counts.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace luaspy {
namespace {

void add(TopCounts::Span& to, const TopCounts::Span& from) { to.recent += from.recent, to.all += from.all; }

}  // namespace

std::vector<TopRow> top_rows(const TopCounts& counts, TopGrouping grouping) {
  using Kind = TopCounts::Entry::Kind;
  const Kind kind = grouping.lines ? Kind::line : Kind::function;
  std::vector<TopRow> rows;
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> row_of(grouping.lines ? counts.lines.size() : counts.functions.size(), none);  // of all
                                                                                                          // threads
  std::map<std::pair<int, std::uint32_t>, std::size_t> row_of_process;
  for (const TopCounts::Entry& entry : counts.entries) {
    if (entry.kind != kind || entry.times.total.all == 0) continue;
    TopRow row = {entry.b, 0, false, grouping.threads ? entry.a : TopRow::all_threads, 0, entry.times};
    if (grouping.processes) row.pid = counts.threads[entry.a].pid;
    if (grouping.lines) {
      const TopCounts::FunctionLine& line = counts.lines[entry.b];
      row.function = line.function, row.line = line.line, row.is_near = line.is_near;
    }
    std::size_t& known = grouping.processes ? row_of_process.try_emplace({row.pid, entry.b}, none).first->second
                                            : row_of[entry.b];
    if (grouping.threads || known == none) {
      known = rows.size();
      rows.push_back(row);
    } else {
      add(rows[known].times.own, entry.times.own);
      add(rows[known].times.total, entry.times.total);
    }
  }
  return rows;
}

void sort_by_total(std::vector<TopRow>& rows) {
  std::ranges::stable_sort(rows, [](const TopRow& a, const TopRow& b) {
    return std::tie(a.times.total.recent, a.times.total.all) > std::tie(b.times.total.recent, b.times.total.all);
  });
}

TopRelations top_relations(const TopCounts& counts, TopCounts::Function function) {
  TopRelations relations;
  relations.function.function = function;
  for (const TopCounts::Entry& entry : counts.entries) {
    if (entry.times.total.all == 0) continue;
    if (entry.kind == TopCounts::Entry::Kind::function && entry.b == function) {
      add(relations.function.times.own, entry.times.own);
      add(relations.function.times.total, entry.times.total);
    }
    if (entry.kind != TopCounts::Entry::Kind::call) continue;
    if (entry.b == function) relations.callers.push_back({entry.a, 0, false, TopRow::all_threads, 0, entry.times});
    if (entry.a == function) relations.callees.push_back({entry.b, 0, false, TopRow::all_threads, 0, entry.times});
  }
  sort_by_total(relations.callers);
  sort_by_total(relations.callees);
  return relations;
}

Frame frame_of(const TopCounts& counts, const TopRow& row) {
  Frame frame = counts.functions[row.function];
  frame.line = row.line, frame.line_is_near = row.is_near;
  return frame;
}

}  // namespace luaspy
