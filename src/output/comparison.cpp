#include "output/comparison.h"

#include <algorithm>
#include <cmath>

#include "profile/function_table.h"

namespace luaspy {

double scale_of(Compared by, const Profile& before, const Profile& after) {
  const auto ratio = [](std::int64_t of, std::int64_t to) {
    return to == 0 ? 1.0 : static_cast<double>(of) / static_cast<double>(to);
  };
  const By counted = usual_by(after.about.unit);
  switch (by) {
    case Compared::shares:
      return ratio(total_cost(after, counted), total_cost(before, counted));
    case Compared::rates:
      return ratio(after.about.weighed_ns(), before.about.weighed_ns());
    case Compared::weights:
      break;
  }
  return 1;
}

std::int64_t compared_amount(const Profile::Amount& amount, Compared by, Unit unit) {
  return by == Compared::shares ? cost(amount, usual_by(unit)) : amount.weight;
}

// As changeOf() of flamegraph/colours.js.
int change_of(const BothAmounts& amounts, const Comparison& comparison, double whole) {
  const auto [before, after, samples_before, samples_after] = amounts;
  const auto of_chance = [](double amount, std::int64_t samples) {
    return amount * amount / static_cast<double>(std::max<std::int64_t>(samples, 1));
  };
  const double difference = after - before;
  const double variance = of_chance(after, samples_after) + of_chance(before, samples_before);
  if (difference == 0 || difference * difference < comparison.noise * comparison.noise * variance) return 0;
  if (std::abs(difference) <
      std::max(comparison.least_difference * whole, comparison.least_ratio * std::max(before, after)))
    return 0;
  constexpr double half = 0.5, tenth = 0.1;
  const double ratio = std::abs(difference) / before;
  const int strength = ratio >= half ? 3 : ratio >= tenth ? 2 : 1;
  return difference > 0 ? strength : -strength;
}

}  // namespace luaspy
