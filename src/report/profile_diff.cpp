#include "report/profile_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

namespace luaspy {
namespace {

constexpr int slice_count = 50;
constexpr int least_slices = 8;        // with samples in them; fewer show nothing
constexpr int related_slices = 4;      // slices up to this distance may still be correlated
constexpr double chance = 0.001;       // probability that chance alone makes a difference in any function
constexpr double less_sure = 0.05;     // the same for Verdict::perhaps
constexpr double least_share = 0.002;  // functions that cost less, in both recordings, are not compared
constexpr double least_samples = 5;

using Slices = std::vector<double>;  // an amount in each slice of time

// One recording, cut into slices.
struct Sliced {
  FunctionTable functions;
  std::vector<Slices> of_function;
  Slices whole;
  double samples = 0;  // total
};

// Time in seconds.
double amount_of(std::int64_t weight, Unit unit) {
  return static_cast<double>(weight) / (unit == Unit::nanoseconds ? 1e9 : 1);
}

double amount_of(const Profile::Amount& amount, DiffBy by, Unit unit) {
  return by == DiffBy::shares ? static_cast<double>(cost(amount, usual_by(unit))) : amount_of(amount.weight, unit);
}

// Which functions a stack counts for.
std::vector<std::uint32_t> counted(const std::vector<FrameId>& stack, const FunctionTable& functions, bool total) {
  std::vector<std::uint32_t> result;
  if (!total) {
    if (!stack.empty()) result.push_back(functions.of_frame[stack.back()]);
    return result;
  }
  for (const FrameId frame : stack) result.push_back(functions.of_frame[frame]);
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Sliced sliced(const Profile& profile, const DiffOptions& options) {
  Sliced result;
  result.functions = functions_of(profile, false);
  result.of_function.assign(result.functions.functions.size(), Slices(slice_count));
  result.whole.assign(slice_count, 0);
  result.samples = static_cast<double>(profile.samples());
  std::vector<std::vector<std::uint32_t>> by_situation;
  for (const Profile::Situation& situation : profile.situations())
    by_situation.push_back(counted(profile.stack(situation.stack), result.functions, options.total));
  std::int64_t end = std::max<std::int64_t>(profile.about.duration_ns, 1);
  for (std::size_t thread = 0; thread < profile.threads().size(); ++thread) {
    profile.timeline(thread).for_each([&](const Timeline::Run& run) { end = std::max(end, run.end_ns); });
  }
  const double slice_ns = static_cast<double>(end) / slice_count;
  const auto put = [&](const Timeline::Run& run, int slice, double part) {
    const auto index = static_cast<std::size_t>(slice);
    result.whole[index] += part;
    for (const std::uint32_t function : by_situation[run.situation]) result.of_function[function][index] += part;
  };
  const auto add = [&](const Timeline::Run& run) {
    const double charged = options.by == DiffBy::shares ? 1 : profile.charged();
    const double amount = charged * amount_of({run.samples, run.weight}, options.by, profile.about.unit);
    const double from = static_cast<double>(run.start_ns) / slice_ns,
                 length = static_cast<double>(run.end_ns - run.start_ns) / slice_ns;
    if (length < 1e-9) return put(run, std::min(static_cast<int>(from), slice_count - 1), amount);  // a moment
    for (auto slice = static_cast<int>(from); slice < slice_count && slice < from + length; ++slice) {
      const double begin = std::max<double>(from, slice), until = std::min<double>(from + length, slice + 1);
      put(run, slice, amount * (until - begin) / length);
    }
  };
  if (profile.about.timed) {
    for (std::size_t thread = 0; thread < profile.threads().size(); ++thread) profile.timeline(thread).for_each(add);
    return result;
  }
  // Samples are taken for independent, if nobody knows when they were.
  for (const auto& [at, amount] : profile.counts()) {
    const double part = amount_of(amount, options.by, profile.about.unit) / slice_count;
    for (int slice = 0; slice < slice_count; ++slice) put({at.situation}, slice, part);
  }
  return result;
}

double sum(const Slices& slices) {
  double result = 0;
  for (const double one : slices) result += one;
  return result;
}

// The number of slices with information of their own: one sample may span many slices.
int used_slices(const Sliced& cut) {
  return static_cast<int>(std::min(
      static_cast<double>(std::ranges::count_if(cut.whole, [](double amount) { return amount > 0; })), cut.samples));
}

// The value by which a function is compared, and how far it can be trusted.
struct Estimate {
  double value = 0, variance = 0, independent = 0;  // independent: the variance if samples were that
};

// The variance of the sum of `residuals`, which belong to successive slices: that of independent
// slices, plus the covariance of near ones (Newey and West 1987, with Bartlett's weights) if that
// makes it larger.
double variance_of_sum(const Slices& residuals, int used) {
  const auto size = static_cast<int>(residuals.size());
  double alone = 0, together = 0;
  for (const double one : residuals) alone += one * one;
  for (int lag = 1; lag <= related_slices; ++lag) {
    double product = 0;
    for (int i = lag; i < size; ++i)
      product += residuals[static_cast<std::size_t>(i)] * residuals[static_cast<std::size_t>(i - lag)];
    together += 2 * (1 - static_cast<double>(lag) / (related_slices + 1)) * product;
  }
  return std::max(alone, alone + together) * used / std::max(used - 1, 1);
}

// `expected`: the function's share in both recordings together, for the lower bound of the
// variance. `of_function`: nullptr if it was never seen in this recording.
Estimate estimate(const Sliced& cut, const Slices* of_function, double seconds, double expected, DiffBy by) {
  const double whole = sum(cut.whole), amount = of_function != nullptr ? sum(*of_function) : 0,
               share = whole > 0 ? amount / whole : 0;
  // For a ratio of two sums, its residuals (Cochran 1977, 6.3); for a rate or a sum, the slices'
  // differences from their mean.
  Slices residuals(slice_count);
  for (std::size_t i = 0; i < residuals.size() && of_function != nullptr; ++i) {
    residuals[i] = (*of_function)[i] - (by == DiffBy::shares ? share * cut.whole[i] : amount / slice_count);
  }
  const double scale = by == DiffBy::shares ? whole : by == DiffBy::weight ? seconds : 1;
  if (!(scale > 0) || !(cut.samples > 0)) return {};
  const double seen = variance_of_sum(residuals, by == DiffBy::shares ? used_slices(cut) : slice_count) /
                      (scale * scale);
  // The variance of independent samples, with one more than was seen: with few samples, slices show
  // little.
  const double p = std::clamp(expected + 1 / cut.samples, 0.0, 1.0);
  const double independent = p * (by == DiffBy::shares ? 1 - p : 1) / cut.samples * (whole / scale) * (whole / scale);
  return {amount / scale, std::max(seen, independent), independent};
}

// The probability that |Student's t| exceeds `t`, by Wallace's normal approximation (1959).
double probability_beyond(double t, double freedom) {
  const double z = (8 * freedom + 1) / (8 * freedom + 3) * std::sqrt(freedom * std::log1p(t * t / freedom));
  return std::erfc(z / std::sqrt(2.0));
}

double quantile(double probability, double freedom) {
  double low = 0, high = 1000;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (probability_beyond(middle, freedom) > probability ? low : high) = middle;
  }
  return high;
}

// A function in both recordings, or in one of them.
struct Pair {
  std::int64_t before = -1, after = -1;  // indexes into FunctionTable; -1: none
};

std::vector<Pair> pair_up(const FunctionTable& before, const FunctionTable& after) {
  std::vector<Pair> pairs;
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < before.texts.size(); ++i) {
    known.emplace(before.texts[i], i);
    pairs.push_back({static_cast<std::int64_t>(i), -1});
  }
  for (std::size_t i = 0; i < after.texts.size(); ++i) {
    const auto found = known.find(after.texts[i]);
    if (found == known.end()) pairs.push_back({-1, static_cast<std::int64_t>(i)});
    else pairs[found->second].after = static_cast<std::int64_t>(i);
  }
  return pairs;
}

// The factor by which most functions' shares changed: the median of the ratios of those that are
// large enough; 1 if there are too few.
double change_of_most(const std::vector<ProfileDiff::Row>& rows) {
  constexpr double large = 0.01;
  constexpr std::size_t least = 4;
  std::vector<double> ratios;
  for (const ProfileDiff::Row& row : rows) {
    if (row.before >= large && row.after >= large) ratios.push_back(row.after / row.before);
  }
  if (ratios.size() < least) return 1;
  std::ranges::sort(ratios);
  const std::size_t middle = ratios.size() / 2;
  return ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
}

// `whole`: the total, in the same unit. `perhaps`: what part of its interval a difference that may
// be one has to exceed.
ProfileDiff::Verdict verdict(const ProfileDiff::Row& row, double whole, double others, double perhaps) {
  using Verdict = ProfileDiff::Verdict;
  const double difference = row.difference();
  if (std::abs(difference) <= perhaps * row.interval || std::abs(difference) < least_difference * whole ||
      std::abs(difference) < least_ratio * std::max(row.before, row.after))
    return Verdict::none;
  const auto is_like_others = [&](double interval) {
    return (others - 1) * difference > 0 && std::abs(row.after - others * row.before) <= interval;
  };
  if (std::abs(difference) <= row.interval)
    return is_like_others(perhaps * row.interval) ? Verdict::none : Verdict::perhaps;
  if (row.before == 0) return Verdict::appeared;
  if (row.after == 0) return Verdict::vanished;
  if (is_like_others(row.interval)) return Verdict::like_others;
  return row.after > others * row.before ? Verdict::slower : Verdict::faster;
}

}  // namespace

ProfileDiff profile_diff(const Profile& before, const Profile& after, const DiffOptions& options,
                         const FunctionMatching& matching) {
  const auto was = [&](const std::string& text) {
    const auto moved = matching.moved.find(text);
    return moved != matching.moved.end() ? moved->second : text;
  };
  ProfileDiff diff;
  diff.ambiguous = matching.ambiguous;
  diff.options = options;
  diff.unit = after.about.unit;
  const auto whole_of = [](const Profile& profile) {
    const std::int64_t used_ns = profile.about.cpu.lua_ns + profile.about.cpu.unknown_ns;
    const double covered = used_ns > 0
                               ? static_cast<double>(profile.about.sampled_cpu_ns) / static_cast<double>(used_ns)
                               : 1;
    return ProfileDiff::Whole{profile.samples(), static_cast<double>(profile.about.weighed_ns()) / 1e9,
                              profile.weight(), std::min(covered, 1.0), static_cast<double>(used_ns) / 1e9};
  };
  diff.before = whole_of(before), diff.after = whole_of(after);
  const Sliced cut_before = sliced(before, options), cut_after = sliced(after, options);
  const int used = std::min(used_slices(cut_before), used_slices(cut_after));
  diff.can_tell = used >= least_slices;
  const double scale_before = sum(cut_before.whole), scale_after = sum(cut_after.whole);
  for (const Pair& pair : pair_up(cut_before.functions, cut_after.functions)) {
    const Slices* const slices_before = pair.before < 0
                                            ? nullptr
                                            : &cut_before.of_function[static_cast<std::size_t>(pair.before)];
    const Slices* const slices_after = pair.after < 0 ? nullptr
                                                      : &cut_after.of_function[static_cast<std::size_t>(pair.after)];
    const double amount_before = slices_before != nullptr ? sum(*slices_before) : 0,
                 amount_after = slices_after != nullptr ? sum(*slices_after) : 0;
    const double share_before = scale_before > 0 ? amount_before / scale_before : 0,
                 share_after = scale_after > 0 ? amount_after / scale_after : 0;
    if (std::max(share_before, share_after) < least_share) continue;
    if (share_before * cut_before.samples + share_after * cut_after.samples < least_samples) continue;
    const double expected = (share_before * cut_before.samples + share_after * cut_after.samples) /
                            std::max(cut_before.samples + cut_after.samples, 1.0);
    const Estimate of_before = estimate(cut_before, slices_before, diff.before.seconds, expected, options.by);
    const Estimate of_after = estimate(cut_after, slices_after, diff.after.seconds, expected, options.by);
    ProfileDiff::Row row;
    if (amount_before > 0) row.before_text = was(cut_before.functions.texts[static_cast<std::size_t>(pair.before)]);
    if (amount_after > 0) row.after_text = cut_after.functions.texts[static_cast<std::size_t>(pair.after)];
    row.before = of_before.value, row.after = of_after.value;
    row.interval = std::sqrt(of_before.variance + of_after.variance);
    if (const double independent = of_before.independent + of_after.independent; independent > 0)
      diff.noise = std::max(diff.noise, row.interval / std::sqrt(independent));
    diff.rows.push_back(row);
  }
  const auto compared = static_cast<double>(std::max<std::size_t>(diff.rows.size(), 1));
  const int freedom = std::max(used - 1, 1);
  const double many = quantile(chance / compared, freedom), fewer = quantile(less_sure / compared, freedom);
  for (ProfileDiff::Row& row : diff.rows) row.interval *= many;
  diff.noise = many * std::max(diff.noise, 1.0);
  if (options.by == DiffBy::shares) diff.others = change_of_most(diff.rows);
  if (options.by == DiffBy::weight) diff.rates = change_of_most(diff.rows);
  const auto whole_in_unit = [&](const ProfileDiff::Whole& whole) {
    const double amount = amount_of(whole.weight, diff.unit);
    return options.by == DiffBy::shares ? 1
           : options.by == DiffBy::run  ? amount
           : whole.seconds > 0          ? amount / whole.seconds
                                        : 0;
  };
  const double whole = std::max(whole_in_unit(diff.before), whole_in_unit(diff.after));
  for (ProfileDiff::Row& row : diff.rows) {
    row.verdict = diff.can_tell ? verdict(row, whole, diff.others, fewer / many) : ProfileDiff::Verdict::none;
    // The interval shrinks with the root of the number of samples. Variances add up: two recordings of
    // different sizes tell as much as two of their harmonic mean.
    const double ratio = row.interval / row.difference();
    const double samples = 2 / (1 / cut_before.samples + 1 / cut_after.samples);
    if (row.verdict == ProfileDiff::Verdict::perhaps)
      row.needed = static_cast<std::int64_t>(std::ceil(ratio * ratio * samples));
  }
  std::ranges::stable_sort(diff.rows, std::greater(),
                           [](const ProfileDiff::Row& row) { return std::abs(row.difference()); });
  return diff;
}

}  // namespace luaspy
