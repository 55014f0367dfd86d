#include "base/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace luaspy {
namespace {

constexpr std::int64_t fewest = 100;  // samples

bool is_above(std::int64_t part, std::int64_t of, int percent) { return of >= fewest && part * 100 > of * percent; }

double share(std::int64_t part, std::int64_t of) { return 100 * static_cast<double>(part) / static_cast<double>(of); }

// `pid` 0: it may have ended long before anybody reads this.
std::string request(std::int64_t pid) {
  if (pid == 0) return "if it runs for some seconds, please run `luaspy doctor` on it meanwhile and send us its report";
  return fmt::format("please run `luaspy doctor --pid {}` while it runs and send us its report", pid);
}

// Ticks that were not lost on purpose.
LossCounts unwanted(LossCounts losses) {
  losses[static_cast<std::size_t>(Loss::skipped)] = losses[static_cast<std::size_t>(Loss::left_out)] = 0;
  return losses;
}

// Whether most of what was lost is of this kind.
bool are_mostly(Loss kind, const LossCounts& losses) {
  const std::int64_t of_kind = losses[static_cast<std::size_t>(kind)];
  return of_kind * 2 > std::accumulate(losses.begin(), losses.end(), std::int64_t{0});
}

// What helps against these losses; "" if that is not known. At a high rate, a look is often not over when the next one
// is due, whatever is lost by that.
std::string remedy(const LossCounts& losses, double rate) {
  constexpr double high_rate = 500;  // Hz
  const std::string than = rate > 0 ? fmt::format(" than {:g} Hz", rate) : "";
  if (are_mostly(Loss::late, losses))
    return "luaspy got no CPU in time, as the machine is busy: a lower --rate" + than + " loses fewer";
  if (are_mostly(Loss::refused, losses)) return "another process traces the threads, or luaspy has lost the right to";
  return rate > high_rate ? "a lower --rate" + than + " loses fewer" : "";
}

}  // namespace

std::optional<std::string> system_call_doubt(std::int64_t pid, std::int64_t samples, std::int64_t at_syscall,
                                             double system_share) {
  constexpr double most_deviations = 4, most_points = 0.03;
  if (samples < fewest || system_share < 0) return std::nullopt;
  const double seen = static_cast<double>(at_syscall) / static_cast<double>(samples), excess = seen - system_share;
  // Uses the larger of both variances: the system share is measured in clock ticks of 10 ms, and a
  // share of 0 would have no variance.
  const double variance = std::max(seen * (1 - seen), system_share * (1 - system_share)) / static_cast<double>(samples);
  if (excess <= most_points || excess <= most_deviations * std::sqrt(variance)) return std::nullopt;
  return fmt::format(
      "{:.1f} % of the samples were taken at returns from system calls, but at most {:.1f} % of the CPU time is "
      "system time: system calls may be shown with far more time than they take; {}",
      100 * seen, 100 * system_share, request(pid));
}

// Samples are counted, so their sum has a deviation of the root of their number.
std::optional<std::string> coverage_doubt(const DoubtFacts& facts) {
  constexpr double most_deviations = 4;
  const std::int64_t used_ns = facts.cpu.lua_ns + facts.cpu.unknown_ns;
  const double ticks = static_cast<double>(used_ns) / 1e9 * facts.rate,
               seen = static_cast<double>(facts.sampled_cpu_ns) / 1e9 * facts.rate;
  if (ticks < static_cast<double>(fewest) || seen >= 0.9 * ticks || ticks - seen < most_deviations * std::sqrt(ticks))
    return std::nullopt;
  std::string text = fmt::format("only {:.0f} % of the {:.1f} s of CPU time that was used meanwhile was sampled",
                                 share(facts.sampled_cpu_ns, used_ns), static_cast<double>(used_ns) / 1e9);
  if (facts.cpu.unknown_ns * 10 > used_ns)
    text += fmt::format("; {:.1f} s were used by processes that ended before luaspy saw whether they run Lua",
                        static_cast<double>(facts.cpu.unknown_ns) / 1e9);
  if (const std::string lost = losses_text(facts.losses); lost != losses_text({}))
    text += fmt::format("; looks without a sample: {}", lost);
  if (facts.losses != LossCounts{}) {
    if (const std::string helps = remedy(unwanted(facts.losses), facts.rate); !helps.empty()) text += "; " + helps;
  }
  return text;
}

std::vector<std::string> doubts(const DoubtFacts& facts) {
  std::vector<std::string> all;
  const std::optional<std::string> coverage = coverage_doubt(facts);
  if (coverage) all.push_back(*coverage);
  const Quality& quality = facts.quality;
  const auto add = [&](const std::string& text) { all.push_back(text + "; " + request(facts.pid)); };
  if (facts.has_lua && facts.samples >= fewest && quality.with_lua == 0)
    add("Lua is in the process, but no sample has Lua: it may not have run, or luaspy does not find it where it runs");
  if (is_above(quality.unclaimed, quality.stacks, 1))
    add(fmt::format(
        "in {:.1f} % of the samples the interpreter runs, but its Lua functions were not found: they are missing there",
        share(quality.unclaimed, quality.stacks)));
  // The number of VM frames and the number of calls that entered one (quality.fresh_mismatch) can
  // differ although nothing is wrong: 5.2 collects garbage while it is setting up a call, and 5.3
  // marks a call as having entered a VM frame when a hook that has yielded is resumed. So these are
  // not doubted.
  if (is_above(quality.not_joined, quality.with_lua, 2))
    add(
        fmt::format("in {:.1f} % of the samples the C and Lua parts of the stack could not be joined: frames may be "
                    "missing, or in the wrong order",
                    share(quality.not_joined, quality.with_lua)));
  if (is_above(quality.function_gone, quality.with_lua, 1))
    all.push_back(
        fmt::format("in {:.1f} % of the samples with Lua the place of a Lua function is not known (?): it was freed "
                    "before luaspy could read it",
                    share(quality.function_gone, quality.with_lua)));
  if (is_above(quality.no_debug_info, quality.with_lua, 1))
    all.push_back(fmt::format(
        "in {:.1f} % of the samples with Lua the place of a Lua function is not known (?): it was compiled without "
        "debug information, and functions that are called the same are shown as one",
        share(quality.no_debug_info, quality.with_lua)));
  const std::int64_t incomplete = quality.stacks - quality.native_complete;
  if (is_above(incomplete, quality.stacks, 1))
    add(
        fmt::format("in {:.1f} % of the samples the native part of the stack is incomplete: outer functions, and the "
                    "Lua that they called, may be missing",
                    share(incomplete, quality.stacks)));
  const bool is_remote = is_above(quality.remote, quality.stacks, 1);
  if (is_remote)
    all.push_back(fmt::format(
        "{:.1f} % of the samples were taken from another CPU, because luaspy did not run on the program's own: "
        "its system calls get too large a share; run luaspy where it may use all CPUs of the program (taskset -p, "
        "cpuset.cpus), unless a real-time thread is the reason",
        share(quality.remote, quality.stacks)));
  const auto at_calls = system_call_doubt(facts.pid, quality.stacks, quality.at_system_call, facts.cpu.system_share);
  if (at_calls && !is_remote) all.push_back(*at_calls);
  const LossCounts losses = unwanted(facts.losses);
  std::int64_t lost = 0;
  for (const std::int64_t count : losses) lost += count;
  if (!coverage && is_above(lost, facts.samples + lost, 10)) {
    const std::string text = fmt::format(
        "{:.0f} % of the ticks were lost ({}): what ran then may differ from what the samples show",
        share(lost, facts.samples + lost), losses_text(losses));
    if (const std::string helps = remedy(losses, facts.rate); !helps.empty()) all.push_back(text + "; " + helps);
    else add(text);
  }
  return all;
}

}  // namespace luaspy
