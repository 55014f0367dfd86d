#include "allocations/allocation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profile/amount_text.h"
#include "profile/share.h"

namespace luaspy {

double uncertainty(const Profile& profile, double sum_of_squares) {
  const auto sum = static_cast<double>(profile.weight());
  if (sum <= 0 || sum_of_squares <= 0) return 100;
  return std::min(100.0, 100 * 1.96 * 0.5 / std::sqrt(sum * sum / sum_of_squares / design_effect_of_allocations));
}

std::string unsampled_text(const CallKinds::Unsampled& unsampled) {
  constexpr double least = 0.5;
  if (unsampled.percent_of_bytes < least) return {};
  return fmt::format(
      "  not in the shares: {:.1f} % of the bytes, in rare blocks (up to {}) of which there is no sample\n",
      unsampled.percent_of_bytes, amount_text(static_cast<std::int64_t>(unsampled.largest), Unit::bytes));
}

}  // namespace luaspy
