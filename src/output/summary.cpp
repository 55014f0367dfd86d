#include "output/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/doubts.h"
#include "base/text.h"
#include "profile/amount_text.h"
#include "profile/coverage.h"
#include "profile/doing.h"
#include "profile/heap_text.h"
#include "profile/mark_text.h"
#include "profile/share.h"

namespace luaspy {
namespace {

void add_stops(const Profile& profile, double ticks_a_second, std::string& out) {
  const StopTimes& stops = profile.stops();
  const Metadata& about = profile.about;
  if (stops.count() != 0) {
    out += fmt::format(
        "  luaspy paused a thread for {:.0f} µs to look at it (99th percentile: {:.0f} µs): {:.1f} ms in "
        "total, {:.2f} % of the time\n",
        static_cast<double>(stops.quantile_ns(0.5)) / 1e3, static_cast<double>(stops.quantile_ns(0.99)) / 1e3,
        static_cast<double>(stops.total_ns()) / 1e6, percent(stops.total_ns(), about.duration_ns));
  }
  if (profile.losses(Loss::skipped) != 0) {
    out += fmt::format("  rate lowered to {:.{}f} Hz so that no thread is paused for more than {:g} % of the time\n",
                       ticks_a_second, ticks_a_second < 10 ? 1 : 0, about.max_stopped);
  }
}

// With fewer samples, a share is off by 10 points and more by chance (two standard deviations of a half).
void add_few(const Profile& profile, std::string& out) {
  constexpr std::int64_t few = 100;
  constexpr double much_higher = 2000, least_times = 4;  // Hz
  const double rate = profile.about.rate;
  if (profile.samples() == 0 || profile.samples() >= few || rate <= 0 || rate * least_times > much_higher) return;
  out += fmt::format(
      "  few samples: shares may be off by {:.0f} points by chance; -r {:g} takes {:.0f} times as many\n",
      100 / std::sqrt(static_cast<double>(profile.samples())), much_higher, much_higher / rate);
}

// With --idle: which threads there are, and what each of them did.
void add_sleepers(const Profile& profile, std::string& out) {
  const auto& [threads, ticks] = profile.sleepers();
  if (threads != 0)
    out += fmt::format("  {} of {} threads {} only seen asleep, at {}, and left out: --all-threads shows them\n",
                       threads, profile.threads().size(), threads == 1 ? "was" : "were", count_of(ticks, "tick"));
  constexpr std::size_t most = 3;
  const std::vector<Doings> doings = doings_by_thread(profile, usual_by(profile.about.unit));
  std::vector<std::size_t> busy;
  for (std::size_t i = 0; i < doings.size(); ++i) {
    if (doings[i].sum() != 0) busy.push_back(i);
  }
  const auto ran = [&](std::size_t i) {
    return doings[i].sum() - doings[i][Doing::asleep] - doings[i][Doing::without_cpu];
  };
  std::ranges::stable_sort(busy, std::greater(), ran);
  if (busy.size() < 2) return;
  std::string_view separator = "  by thread: ";
  for (std::size_t i = 0; i < std::min(busy.size(), most); ++i) {
    const std::string text = running_text(doings[busy[i]]);
    if (text.empty()) continue;
    out += fmt::format("{}{} {}", std::exchange(separator, "; "), profile.threads()[busy[i]].name, text);
  }
  if (separator == "; ")
    out += fmt::format(
        "{}\n", busy.size() > most ? fmt::format("; {} more (luaspy report --by-thread)", busy.size() - most) : "");
}

void add_coverage(const Metadata& about, std::string& out) {
  const CpuUse& cpu = about.cpu;
  const std::string text = coverage_text(cpu, about.sampled_cpu_ns);
  if (text.empty()) return;
  out += fmt::format("  sampled: {}", text);
  if (cpu.other_ns * 100 > cpu.lua_ns + cpu.unknown_ns)
    out += fmt::format("; programs without Lua used {:.1f} s more", static_cast<double>(cpu.other_ns) / 1e9);
  out += '\n';
}

void add_doings(const Profile& profile, std::string& out) {
  const By by = usual_by(profile.about.unit);
  const Doings doings = doings_of(profile, by);
  std::string_view separator = "  spent in: ";
  for (const Doing doing : doings.order()) {
    out += fmt::format("{}{} {:.1f} %", separator, names(doing).name, percent(doings[doing], total_cost(profile, by)));
    separator = ", ";
  }
  out += '\n';
}

// Of a file that is no recording of luaspy.
void add_kind(const Profile& profile, const std::string& sum, std::string& out) {
  const Metadata& about = profile.about;
  const std::string lasted = about.duration_ns > 0
                                 ? fmt::format("{:.1f} s, ", static_cast<double>(about.duration_ns) / 1e9)
                                 : "";
  out += fmt::format("{}, {}{}{} of {}\n", about.kind, lasted, sum, count_of(profile.samples(), "sample"),
                     count_of(static_cast<std::int64_t>(profile.threads().size()), "thread"));
}

// What a loss means.
std::string_view meaning(Loss loss) {
  constexpr std::array<std::string_view, loss_count> meanings = {"",
                                                                 "luaspy got no CPU in time",
                                                                 "left out to keep pauses short",
                                                                 "the kernel did not let go of the thread",
                                                                 "luaspy may not look at the thread",
                                                                 "before it could be read",
                                                                 "its memory was gone or made no sense",
                                                                 "so its stack was a mixture",
                                                                 "--only, --ignore, --label, --slower",
                                                                 "it had moved there when luaspy came",
                                                                 "the pause was over before all was read"};
  return meanings[static_cast<std::size_t>(loss)];
}

void add_losses(const Profile& profile, std::string& out) {
  if (profile.total_losses() == 0) return;
  std::string_view separator = "  lost: ";
  for (std::size_t i = 1; i < loss_count; ++i) {
    const auto loss = static_cast<Loss>(i);
    if (profile.losses(loss) == 0) continue;
    LossCounts one{};
    one[i] = profile.losses(loss);
    out += fmt::format("{}{} ({})", separator, losses_text(one), meaning(loss));
    separator = ", ";
  }
  out += fmt::format("; {:.1f} % of all looks\n",
                     percent(profile.total_losses(), profile.total_losses() + profile.samples() + profile.idle()));
}

void add_idle(const Profile& profile, std::string& out) {
  const std::int64_t ticks = profile.idle() - profile.sleepers().ticks;
  if (ticks == 0) return;
  const bool has_asleep = std::ranges::any_of(profile.counts(), [&](const auto& count) {
    return profile.situations()[count.first.situation].state == Sample::State::sleeping;
  });
  const bool of_idle = has_asleep || profile.sleepers().threads != 0;
  out += fmt::format("  asleep: at {} a thread slept, which is no sample{}\n", count_of(ticks, "tick"),
                     of_idle ? "" : " (--idle makes it one)");
}

void add_quality(const Quality& quality, std::string& out) {
  out += fmt::format("  stacks: {:.2f} % have Lua calls, {:.2f} % reach the thread's first C function",
                     percent(quality.with_lua, quality.stacks), percent(quality.native_complete, quality.stacks));
  const auto part = [&](std::string_view what, std::int64_t count) {
    if (count != 0) out += fmt::format("; {} {:.2f} %", what, percent(count, quality.with_lua));
  };
  part("C and Lua parts not joined", quality.not_joined);
  part("Lua part cut short", quality.lua_broken);
  part("no Lua call readable", quality.lua_unusable);
  part("innermost call still being set up, left out", quality.half_built);
  part("implausible calls left out", quality.calls_dropped);
  part("Lua stack being moved", quality.relocated);
  part("a function (?) was freed before it was read", quality.function_gone);
  part("a function (?) has no debug information", quality.no_debug_info);
  part("C and Lua frames could not be matched one to one", quality.fresh_mismatch);
  out += '\n';
}

}  // namespace

std::string hottest_text(const Profile& profile, Mode mode) {
  constexpr std::size_t most = 10;
  if (profile.samples() == 0) return {};
  const FunctionTable functions = functions_of(profile, false, mode);
  const By by = usual_by(profile.about.unit);
  const std::vector<Cost> all = costs(profile, functions, by);
  const std::int64_t whole = total_cost(profile, by);
  std::vector<std::uint32_t> order = most_expensive(all, functions);
  // Functions of equal cost are ordered by name.
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(all[b].own, all[b].total, functions.texts[a]) <
           std::tie(all[a].own, all[a].total, functions.texts[b]);
  });
  // Samples of time have no weights of their own, and come at all places alike.
  const bool has_intervals = profile.about.unit != Unit::nanoseconds;
  Weights everything{static_cast<double>(whole), 0};
  for (const auto& [at, amount] : profile.counts()) everything.squares += amount.squares;
  const auto points = [&](std::int64_t part, double squares) {
    return has_intervals
               ? fmt::format(
                     " \u00b1{:4.1f}",
                     share_of({static_cast<double>(part), squares}, everything, design_effect_of_allocations).points)
               : std::string();
  };
  std::string text = has_intervals ? "   %Own        %Total        Function\n" : "   %Own  %Total  Function\n";
  for (std::size_t i = 0; i < std::min(order.size(), most); ++i) {
    const Cost& of = all[order[i]];
    if (of.own == 0) break;
    text += fmt::format("  {:5.1f}{}   {:5.1f}{}  {}\n", percent(of.own, whole), points(of.own, of.own_squares),
                        percent(of.total, whole), points(of.total, of.total_squares), functions.texts[order[i]]);
  }
  return text;
}

std::string collector_text(const CollectorCost& cost, int rows, Charset charset) {
  const double part = cost.collecting / 100;
  const double points = cost.looks == 0 ? 100 : 196 * std::sqrt(part * (1 - part) / static_cast<double>(cost.looks));
  std::string text = fmt::format(
      "The garbage collector takes {:.1f} % of the time ({}{:.1f} by chance, 95 %). Who causes that, by bytes "
      "allocated:\n"
      "   %Own  %Total  %OwnBytes  %TotalBytes  Function\n",
      cost.collecting, charset == Charset::utf8 ? "±" : "+-", points);
  int shown = 0;
  for (const CollectorCost::Row& row : cost.rows) {
    if (shown == rows) {
      text += fmt::format("{:41}{} more\n", "", cost.rows.size() - static_cast<std::size_t>(rows));
      break;
    }
    ++shown;
    text += fmt::format("  {:5.1f}   {:5.1f}      {:5.1f}        {:5.1f}  {}\n", row.own_time, row.total_time,
                        row.own_bytes, row.total_bytes, displayable(cost.functions.texts[row.function], charset));
  }
  if (cost.without_site > 0)
    text += fmt::format("  {:5.1f}   {:5.1f}          -            -  (processes of which no allocation was sampled)\n",
                        cost.without_site, cost.without_site);
  return text;
}

std::string summary_text(const Profile& profile) {
  const Metadata& about = profile.about;
  const double seconds = static_cast<double>(about.duration_ns) / 1e9;
  const double looked_s = static_cast<double>(about.looked_ns()) / 1e9;
  const double ticks_a_second = looked_s > 0 ? static_cast<double>(about.ticks) / looked_s : 0;
  std::string out;
  for (const std::string& doubt : doubts(profile.doubt_facts())) out += fmt::format("doubtful: {}\n  ", doubt);
  const bool of_time = about.unit == Unit::nanoseconds;
  const std::string sum = of_time || about.unit == Unit::samples ? ""
                                                                 : amount_text(profile.weight(), about.unit) + " in ";
  if (!about.kind.empty()) add_kind(profile, sum, out);
  else
    out += fmt::format("{:.1f} s, {}{} of {}; looked {:.1f} times a second{}{}\n", seconds, sum,
                       count_of(profile.samples(), "sample"),
                       count_of(static_cast<std::int64_t>(profile.threads().size()), "thread"), ticks_a_second,
                       about.luas.empty() ? "" : "; ", joined(about.luas, ", "));
  if (about.allocations != 0)
    out += fmt::format("  {} of allocations, too, in turns: {:.1f} s for these, {:.1f} s for the samples of time\n",
                       count_of(about.allocations, "sample"), seconds - looked_s, looked_s);
  if (of_time && about.kind.empty()) add_few(profile, out);
  if (of_time) add_sleepers(profile, out);
  if (of_time) add_coverage(about, out);
  add_stops(profile, ticks_a_second, out);
  if (profile.quality().stacks != 0) add_doings(profile, out);
  if (const std::string heap = heap_text(profile.heaps, about.duration_ns); !heap.empty())
    out += fmt::format("  Lua heap: {}\n", heap);
  if (!profile.marks.empty()) out += fmt::format("  LuaJIT's compiler: {}\n", marks_text(profile.marks));
  if (profile.quality().stacks != 0) add_quality(profile.quality(), out);
  add_losses(profile, out);
  add_idle(profile, out);
  if (profile.waiting() != 0) {
    const std::int64_t could_run = profile.waiting() + profile.quality().stacks + profile.total_losses();
    out += fmt::format("  waited for a CPU at {}, {:.0f} % of the ticks at which a thread could have run\n",
                       count_of(profile.waiting(), "tick"), percent(profile.waiting(), could_run));
  }
  return out;
}

}  // namespace luaspy
