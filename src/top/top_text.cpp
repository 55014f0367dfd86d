#include "top/top_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/doubts.h"
#include "base/paint.h"
#include "profile/amount_text.h"
#include "profile/heap_text.h"

namespace luaspy {

std::string time_text(std::int64_t ns) {
  const std::int64_t seconds = ns / 1'000'000'000;
  if (seconds < 1000) return fmt::format("{:.2f}s", static_cast<double>(ns) / 1e9);
  if (seconds < 60'000) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
}

std::string share_text(double percent) {
  return percent < 999.95 ? fmt::format("{:.1f}", percent) : fmt::format("{:.0f}", percent);
}

TopStyle style_of_share(double percent) {
  const Ink ink = Paint::of_share(percent);
  return ink == Ink::hot    ? TopStyle::hot
         : ink == Ink::warm ? TopStyle::warm
         : percent < 0.05   ? TopStyle::dim
                            : TopStyle::plain;
}

TopStyle style_of_kind(Frame::Kind kind) {
  switch (kind) {
    case Frame::Kind::lua:
      return TopStyle::plain;
    case Frame::Kind::c:
      return TopStyle::c;
    case Frame::Kind::native:
      return TopStyle::native;
    case Frame::Kind::kernel:
      return TopStyle::kernel;
    case Frame::Kind::marker:
      break;
  }
  return TopStyle::marker;
}

std::vector<std::string> doubts_of(const TopCounts& counts, const TopTarget& target) {
  return doubts({target.ended ? 0 : target.pid, target.lua_mapped || !target.luas.empty(), counts.samples,
                 counts.quality, counts.losses, target.cpu, target.sampled_cpu_ns, target.rate});
}

double share(std::int64_t part, std::int64_t of) {
  return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

std::string threads_text(const TopCounts& counts, const TopTarget& target, bool since_start) {
  const std::int64_t ran = since_start ? counts.ran.all : counts.ran.recent;
  const std::string processes = target.processes > 1 ? fmt::format("{} processes, ", target.processes) : "";
  return fmt::format("{}{} thread{}, {} ran", processes, counts.threads_now, counts.threads_now == 1 ? "" : "s", ran);
}

std::string heap_line(const TopHeap& heap, bool since_start, int width) {
  const HeapSummary& summary = since_start ? heap.all : heap.recent;
  std::string line = fmt::format("Lua heap {}{}", amount_text(summary.last, Unit::bytes), in_states(heap.states));
  for (const std::string& part : {summary.growth ? growth_text(*summary.growth) : std::string(),
                                  summary.cycles ? cycles_text(*summary.cycles) : std::string()}) {
    if (part.empty() || columns(line) + 2 + columns(part) > width) break;
    line += ", " + part;
  }
  return line;
}

std::string_view name(Activity activity) {
  static constexpr std::array<std::string_view, activity_count> names = {"Lua", "C",        "machine code",
                                                                         "GC",  "compiler", "no Lua"};
  return names[static_cast<std::size_t>(activity)];
}

Told told(const TopCounts& counts, Activity activity) {
  switch (activity) {
    case Activity::machine_code:
      return counts.luajit ? Told::yes : Told::absent;
    case Activity::compiling:
    case Activity::no_lua:
      return counts.activity[static_cast<std::size_t>(activity)].all != 0 ? Told::yes : Told::absent;
    case Activity::collecting:
      return counts.sees_collector ? Told::yes : Told::unknown;
    case Activity::lua:
    case Activity::c:
      break;
  }
  return Told::yes;
}

}  // namespace luaspy
