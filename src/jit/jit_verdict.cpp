#include "jit/jit_verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace luaspy {

double percent_of(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

std::string why_text(const JitRow& row) {
  const std::string reason = row.reason.empty() ? "" : ": " + row.reason;
  switch (row.why) {
    case WhyInterpreted::not_found:
      return "not known: luaspy did not find its prototype";
    case WhyInterpreted::compiler_off:
      return "the JIT compiler is off";
    case WhyInterpreted::function_off:
      return "JIT is off for it (jit.off)";
    case WhyInterpreted::blacklisted:
      if (row.failed == 0) return "blacklisted; LuaJIT no longer has the reason";
      return fmt::format("blacklisted after {}{}", attempts_text(row.failed, row.at_least), reason);
    case WhyInterpreted::aborted:
      return fmt::format("{} failed{}; penalty {} of 60000", attempts_text(row.failed, row.at_least), reason,
                         row.penalty);
    case WhyInterpreted::compiled:
      if (row.exits.empty()) return fmt::format("compiled (trace {})", row.trace);
      return fmt::format("compiled (trace {}), and left: {}", row.trace, fmt::join(row.exits, ", "));
    case WhyInterpreted::never:
      return "no trace begins in a function with ...: it is compiled where a compiled function calls it";
    case WhyInterpreted::not_tried:
      break;
  }
  return "no attempt is known: not hot yet, or only as a part of what calls it";
}

std::string jit_verdict(const JitReport& report) {
  const CodeTime& time = report.time;
  const std::int64_t all = time.with_lua();
  if (all == 0) return "There are no samples of Lua that runs.";
  const double interpreted = percent_of(time.of(VmState::interpreting), all),
               machine_code = percent_of(time.of(VmState::machine_code), all);
  const bool is_off = !report.states.empty() && std::ranges::all_of(report.states, [](const JitSeen& seen) {
    return seen.knowledge->is_on == false;
  });
  if (is_off)
    return fmt::format("The JIT compiler is off (jit.off): {:.0f} % of the time is interpreted.", interpreted);
  constexpr double little = 5;  // %
  if (interpreted < little)
    return fmt::format("Only {:.1f} % of the time is interpreted; {:.0f} % is in machine code.", interpreted,
                       machine_code);
  const auto row = std::ranges::max_element(report.rows, {}, &JitRow::interpreted_ns);
  if (row == report.rows.end() || row->interpreted_ns == 0)
    return fmt::format("{:.0f} % of the time is interpreted.", interpreted);
  const std::string loop = row->is_loop ? fmt::format(", in the loop of lines {}-{}", row->first_line, row->last_line)
                                        : "";
  return fmt::format("{:.0f} % of the time is interpreted; {:.0f} % of the time in {}{}: {}.", interpreted,
                     percent_of(row->interpreted_ns, all), row->function, loop, why_text(*row));
}

}  // namespace luaspy
