#include "profile/heap_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profile/amount_text.h"

namespace luaspy {

std::string growth_text(double bytes_per_second) {
  const auto bytes = static_cast<std::int64_t>(std::llround(bytes_per_second));
  return fmt::format("{}{}/s", bytes > 0 ? "+" : "", amount_text(bytes, Unit::bytes));
}

std::string cycles_text(double per_second) {
  if (per_second == 0) return "no cycle seen";
  constexpr double one_decimal = 9.95, two_decimals = 0.95;
  const int decimals = per_second < two_decimals ? 2 : per_second < one_decimal ? 1 : 0;
  return fmt::format("at least {:.{}f} cycles/s", per_second, decimals);
}

std::string in_states(std::size_t states) { return states == 1 ? "" : fmt::format(" in {} states", states); }

std::string heap_name(const HeapTracks& heaps, std::size_t state) {
  const auto& states = heaps.states();
  const auto before = std::count_if(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(state),
                                    [&](const auto& other) { return other.state.pid == states[state].state.pid; });
  return before == 0 ? "Lua heap" : fmt::format("Lua heap {}", before + 1);
}

std::string heap_text(const HeapTracks& heaps, std::int64_t until_ns) {
  const std::optional<HeapSummary> summary = heaps.total().summary(until_ns);
  if (!summary) return {};
  const auto bytes = [](std::int64_t amount) { return amount_text(amount, Unit::bytes); };
  std::string text = fmt::format("{} at the end{}, {} to {}", bytes(summary->last), in_states(heaps.states().size()),
                                 bytes(summary->least), bytes(summary->most));
  if (summary->growth) text += ", " + growth_text(*summary->growth);
  if (summary->cycles) text += ", " + cycles_text(*summary->cycles);
  return text;
}

}  // namespace luaspy
