#include "alloc/alloc_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "alloc/live_recording.h"
#include "allocations/allocation_sink.h"
#include "allocations/allocation_text.h"
#include "output/summary.h"
#include "profile/amount_text.h"
#include "profile/share.h"

namespace luaspy {
namespace {

std::int64_t whole(double amount) { return static_cast<std::int64_t>(std::llround(amount)); }

double share(double part, double all) { return all > 0 ? 100 * part / all : 0; }

std::string types_text(const AllocationTypes& types) {
  struct Row {
    double bytes, calls;
    std::string name;
  };
  std::vector<Row> rows;
  AllocationTypes::Amount all;
  for (const auto& [name, amount] : types.by_name) {
    rows.push_back({amount.bytes, amount.calls, name});
    all.bytes += amount.bytes, all.calls += amount.calls;
  }
  std::ranges::sort(rows, std::greater(), &Row::bytes);
  std::string text = "  %Bytes  %Count  For\n";
  for (const Row& row : rows)
    text += fmt::format("   {:5.1f}   {:5.1f}  {}\n", share(row.bytes, all.bytes), share(row.calls, all.calls),
                        row.name);
  return text;
}

}  // namespace

void AllocationTypes::add(const AllocationSample& allocation) {
  Amount& amount = by_name[name(allocation.use)];
  amount.bytes += allocation.bytes;
  amount.calls += allocation.calls;
}

// Kish's effective number of samples: (sum of weights)^2 / sum of their squares.
std::string live_text(const LiveRecording& live, Mode mode) {
  const LiveRecording::Sums &in_use = live.sums(Fate::in_use), &gone = live.sums(Fate::gone),
                            &not_known = live.sums(Fate::not_known), &young = live.young();
  const double all = in_use.bytes + gone.bytes;
  std::string text;
  if (in_use.samples != 0) {
    text += fmt::format("Still in use at the end, by bytes:\n{}\n", hottest_text(live.bytes().profile(), mode));
    text += fmt::format("Still in use at the end, by count:\n{}\n", hottest_text(live.objects().profile(), mode));
  }
  // Without addresses, for which there may be no debug register, nothing is known.
  if (in_use.samples + gone.samples == 0) text += "Still in use at the end: not known of any sample";
  else
    text += fmt::format("Still in use at the end: {:.1f} % of the bytes, {} of {} samples", share(in_use.bytes, all),
                        in_use.samples, in_use.samples + gone.samples);
  text += fmt::format("; not counted: {} of the last tenth of the time", young.samples);
  if (not_known.samples != 0) text += fmt::format(", {} of which it is not known", not_known.samples);
  return text + "\n\n";
}

std::string alloc_text(const AllocationCounts& counts, const AllocationTypes& types, const Profile& bytes,
                       const Profile& objects, double points, Mode mode) {
  const double seconds = static_cast<double>(counts.duration_ns) / 1e9;
  std::string text;
  text += fmt::format("By bytes:\n{}\n", hottest_text(bytes, mode));
  text += fmt::format("By count:\n{}\n", hottest_text(objects, mode));
  text += types_text(types) + '\n';
  text += fmt::format("luaspy: {:.1f} s, {} {}, {}/s; {}: by chance, a share is off by {:.1f} points at most (95 %)\n",
                      seconds, counts.shares_cpu ? "at least" : "some", amount_text(whole(counts.bytes), Unit::bytes),
                      amount_text(whole(counts.bytes / std::max(seconds, 1e-9)), Unit::bytes),
                      count_of(counts.samples, "sample"), points);
  if (counts.shares_cpu)
    text +=
        "  doubtful: luaspy and the program have one CPU together. Allocations that were soon freed are seen less "
        "often.\n";
  text += unsampled_text(counts.unsampled);
  text += fmt::format("  each sample is the last of some {:.0f} allocations that were trapped one after another\n",
                      counts.calls_a_burst);
  text += fmt::format("  cost: some {:.1f} % of the program's time\n",
                      share(static_cast<double>(counts.spent_ns), static_cast<double>(counts.duration_ns)));
  if (counts.refused) text += fmt::format("  not all: {}\n", counts.refused->text);
  std::string_view separator = "  no samples: ";
  for (const auto& [count, why] :
       {std::pair{counts.frees, "because the collector freed for too long"},
        std::pair{counts.cut, "because the program allocated no more"}, std::pair{counts.unread, "unreadable"}}) {
    if (count != 0) text += fmt::format("{}{} {}", std::exchange(separator, ", "), count, why);
  }
  if (separator == ", ") text += '\n';
  return text;
}

}  // namespace luaspy
