#include "profile/collector_cost.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "profile/recorded.h"

namespace luaspy {
namespace {

int process_at(const Profile& profile, const Profile::ThreadSituation& at) {
  return process_of(profile, profile.threads()[at.thread]);
}

// Of one process: the collector's part of all samples of time, and what was allocated.
struct OfProcess {
  double collecting = 0;  // %
  double bytes = 0;
};

std::map<int, OfProcess> by_process(const Profile& time, const Profile& bytes, By by) {
  std::map<int, OfProcess> all;
  const std::int64_t whole = total_cost(time, by);
  for (const auto& [at, amount] : time.counts()) {
    if (time.situations()[at.situation].vm_state == VmState::collecting)
      all[process_at(time, at)].collecting += percent(cost(amount, by), whole);
  }
  for (const auto& [at, amount] : bytes.counts())
    all[process_at(bytes, at)].bytes += static_cast<double>(amount.weight);
  return all;
}

// The functions of a stack, outermost first.
std::vector<std::uint32_t> shown_functions(const Profile& profile, const FunctionTable& functions, StackId stack) {
  std::vector<std::uint32_t> shown;
  const std::vector<FrameId> frames = profile.stack(stack);
  for (const FrameId frame : frames) {
    if (functions.of_frame[frame] != FunctionTable::not_shown) shown.push_back(functions.of_frame[frame]);
  }
  if (shown.empty() && !frames.empty()) shown.push_back(functions.nothing);
  return shown;
}

}  // namespace

CollectorCost collector_cost(const Profile& time, const Profile& bytes, By by, Mode mode) {
  CollectorCost result;
  result.functions = functions_of(bytes, false, mode);
  result.looks = time.samples();
  result.collected = time.samples_in(VmState::collecting);
  const std::map<int, OfProcess> processes = by_process(time, bytes, by);
  for (const auto& [pid, of] : processes) {
    result.collecting += of.collecting;
    if (of.bytes == 0) result.without_site += of.collecting;
  }
  std::vector<CollectorCost::Row> rows(result.functions.functions.size());
  const auto all_bytes = static_cast<double>(bytes.weight());
  for (const auto& [at, amount] : bytes.counts()) {
    std::vector<std::uint32_t> functions = shown_functions(bytes, result.functions,
                                                           bytes.situations()[at.situation].stack);
    if (functions.empty() || amount.weight == 0) continue;
    const OfProcess& process = processes.at(process_at(bytes, at));
    const auto weight = static_cast<double>(amount.weight);
    const double of_bytes = 100 * weight / all_bytes, of_time = process.collecting * weight / process.bytes;
    rows[functions.back()].own_bytes += of_bytes, rows[functions.back()].own_time += of_time;
    std::ranges::sort(functions);
    functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
    for (const std::uint32_t function : functions)
      rows[function].total_bytes += of_bytes, rows[function].total_time += of_time;
  }
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    rows[i].function = i;
    if (rows[i].total_bytes > 0) result.rows.push_back(rows[i]);
  }
  std::ranges::stable_sort(result.rows, std::greater(), [&](const CollectorCost::Row& row) {
    const bool carries = is_carrier(result.functions.functions[row.function], row.own_bytes > 0);
    return std::tuple(row.own_time, row.own_bytes, !carries, row.total_bytes);
  });
  return result;
}

}  // namespace luaspy
