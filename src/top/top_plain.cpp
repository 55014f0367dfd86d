#include "top/top_plain.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include "base/text.h"
#include "profile/coverage.h"
#include "profile/function_table.h"
#include "top/top_text.h"

namespace luaspy {

std::string plain_table(const TopCounts& counts, const TopTarget& target) {
  constexpr std::size_t most_text = 4096;  // bytes
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
  const std::int64_t elapsed = counts.elapsed.recent;
  std::string text;
  text += fmt::format("# pid {}: {}{}\n", target.pid, printable(target.command, most_text),
                      target.ended           ? " (has ended)"
                      : target.still.empty() ? ""
                                             : fmt::format(" ({})", target.still));
  for (const std::string& doubt : doubts_of(counts, target)) text += fmt::format("# doubtful: {}\n", doubt);
  const std::string luas = target.luas.empty() ? "" : printable(joined(target.luas, ", ")) + ", ";
  const std::string covered = coverage_text(target.cpu, target.sampled_cpu_ns);
  const double rate = elapsed == 0 ? 0 : static_cast<double>(counts.ticks.recent) / seconds(elapsed);
  text += fmt::format("# {:.1f} s, {}{:.1f} of {:g} Hz, stood still {:.2f} %, {}, lost {}{}\n",
                      seconds(counts.elapsed.all), luas, rate, target.rate, share(counts.stopped.recent, elapsed),
                      threads_text(counts, target, false), losses_text(counts.losses),
                      covered.empty() ? "" : ", sampled " + covered);
  if (target.heap) text += fmt::format("# {}\n", heap_line(*target.heap, false, std::numeric_limits<int>::max()));
  text += '#';
  for (std::size_t i = 0; i < activity_count; ++i) {
    const auto activity = static_cast<Activity>(i);
    const Told known = told(counts, activity);
    const std::string part = known == Told::unknown
                                 ? "-"
                                 : fmt::format("{:.1f} %", share(counts.activity[i].recent, elapsed));
    if (known != Told::absent) text += fmt::format(" {} {},", name(activity), part);
  }
  if (counts.waiting.recent != 0)
    text += fmt::format(" waiting for a CPU {:.1f} %,", share(counts.waiting.recent, elapsed));
  text += fmt::format(" idle {:.1f} %{}\n  %Own  %Total   OwnTime  TotalTime  Function (file:line)\n",
                      share(counts.idle.recent, elapsed),
                      counts.threads_now > 1 ? " (100 %: one thread all the time)" : "");
  std::vector<TopRow> rows = top_rows(counts, {});
  std::erase_if(rows, [](const TopRow& row) { return row.times.total.recent == 0; });
  const auto key = [&](const TopRow& row) {
    const bool carries = is_carrier(counts.functions[row.function], row.times.own.recent != 0);
    return std::tuple(row.times.own.recent, !carries, row.times.total.recent, row.times.own.all, row.times.total.all);
  };
  std::ranges::stable_sort(rows, std::greater(), key);
  for (const TopRow& row : rows) {
    text += fmt::format("{:6.1f} {:7.1f} {:9.2f} {:10.2f}  {}\n", share(row.times.own.recent, elapsed),
                        share(row.times.total.recent, elapsed), seconds(row.times.own.all),
                        seconds(row.times.total.all), printable(describe(frame_of(counts, row), false), most_text));
  }
  return text + '\n';
}

}  // namespace luaspy
