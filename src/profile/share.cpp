#include "profile/share.h"

#include <algorithm>
#include <cmath>

namespace luaspy {

// A share of weights is a ratio of two sums of samples; its variance is that of a ratio, to first order:
// sum of w^2 (is part - share)^2, over the square of the sum of w. This is what a number of samples of
// equal weight would have, their effective number (Kish). For that number, Wilson's interval holds for
// small shares as well. It is wider on the side of a half, which counts here.
Share share_of(const Weights& part, const Weights& all, double design_effect) {
  constexpr double z = 1.96;  // of a normal distribution: 95 %
  constexpr double most = 4;  // a few light samples do not show that a part has no heavy ones
  Share share;
  if (all.sum <= 0 || all.squares <= 0) return share;
  const double p = std::clamp(part.sum / all.sum, 0.0, 1.0), rest = std::max(all.squares - part.squares, 0.0);
  share.percent = 100 * p;
  const double variance = (part.squares * (1 - p) * (1 - p) + rest * p * p) / (all.sum * all.sum);
  const double kish = all.sum * all.sum / all.squares;
  const double n = (variance > 0 && p < 1 ? std::min(p * (1 - p) / variance, most * kish) : kish) / design_effect;
  const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  share.points = std::min(100.0, 100 * (std::abs(middle - p) + half));
  return share;
}

}  // namespace luaspy
