#include "profile/coverage.h"

#include <fmt/format.h>

#include <algorithm>

namespace luaspy {

std::optional<double> coverage(const CpuUse& used, std::int64_t sampled_ns) {
  const std::int64_t used_ns = used.lua_ns + used.unknown_ns;
  if (used_ns <= 0) return std::nullopt;
  return std::min(100 * static_cast<double>(sampled_ns) / static_cast<double>(used_ns), 100.0);
}

std::string coverage_text(const CpuUse& used, std::int64_t sampled_ns) {
  const std::optional<double> percent = coverage(used, sampled_ns);
  if (!percent) return {};
  return fmt::format("{:.0f} % of the {:.1f} s of CPU time that was used meanwhile", *percent,
                     static_cast<double>(used.lua_ns + used.unknown_ns) / 1e9);
}

}  // namespace luaspy
