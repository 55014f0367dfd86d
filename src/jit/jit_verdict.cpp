#include "jit/jit_verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace luaspy {

double percent_of(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
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
