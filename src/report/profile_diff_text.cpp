#include <fmt/format.h>

#include <algorithm>

#include "report/profile_diff.h"

namespace luaspy {
namespace {

using Verdict = ProfileDiff::Verdict;

std::string amount(double value, DiffBy by, bool with_sign) {
  const double shown_value = by == DiffBy::run ? value : 100 * value;
  const int digits = by == DiffBy::run ? 3 : 1;
  return with_sign ? fmt::format("{:+.{}f}", shown_value, digits) : fmt::format("{:.{}f}", shown_value, digits);
}

// The factor by which most functions' shares changed, if it is worth mentioning; else 1.
double others(const ProfileDiff& diff) { return diff.others < 0.99 || diff.others > 1.01 ? diff.others : 1; }

std::string verdict_text(const ProfileDiff::Row& row, double of_others) {
  switch (row.verdict) {
    case Verdict::slower:
      return fmt::format("slower {:+.0f} %", 100 * (row.after / row.before / of_others - 1));
    case Verdict::faster:
      return fmt::format("faster {:+.0f} %", 100 * (row.after / row.before / of_others - 1));
    case Verdict::like_others:
      return "like most";
    case Verdict::appeared:
      return "new";
    case Verdict::vanished:
      return "gone";
    case Verdict::none:
      break;
  }
  return row.before_text.empty() ? "- (after only)" : row.after_text.empty() ? "- (before only)" : "-";
}

std::string function_of(const ProfileDiff::Row& row, const TextStyle& style) {
  if (!row.moved) return shown(row.before_text.empty() ? row.after_text : row.before_text, style);
  return fmt::format("{} {} {}", shown(row.before_text, style), style.charset == Charset::utf8 ? "→" : "->",
                     shown(row.after_text, style));
}

std::string how(const ProfileDiff& diff) {
  switch (diff.options.by) {
    case DiffBy::shares: {
      std::string text =
          "Shares of all samples, in percent: if one function gets slower, the shares of all others shrink. --by "
          "time compares seconds.\n";
      if (others(diff) != 1) {
        text += fmt::format(
            "Most functions' shares changed by {:+.1f} %, as they do when others get slower or faster; slower and "
            "faster are relative to that.\n",
            100 * (diff.others - 1));
      }
      return text;
    }
    case DiffBy::time:
      return "Percent of the time of the recording, of all threads together: meaningful if the load was the same. --by "
             "run compares runs of the same work.\n";
    case DiffBy::run:
      break;
  }
  return "Total seconds: meaningful if both recordings cover the same work from its start to its end.\n";
}

std::string summary(const ProfileDiff& diff) {
  const auto whole = [](const ProfileDiff::Whole& of) {
    return fmt::format("{} samples, {:.2f} s of threads' time in {:.2f} s", of.samples, of.cpu_seconds, of.seconds);
  };
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(diff.rows, verdict, &ProfileDiff::Row::verdict);
  };
  const auto slower = count(Verdict::slower) + count(Verdict::appeared),
             faster = count(Verdict::faster) + count(Verdict::vanished);
  std::string text = fmt::format("total: before {}; after {}; ", whole(diff.before), whole(diff.after));
  if (!diff.can_tell) return text + "too short to tell a difference from chance.\n";
  if (slower + faster == 0) return text + "no significant difference.\n";
  return text + fmt::format("{} slower or new, {} faster or gone, {} without a significant difference.\n", slower,
                            faster, count(Verdict::none));
}

}  // namespace

std::string diff_text(const ProfileDiff& diff, const TextStyle& style) {
  const std::string plus_minus = style.charset == Charset::utf8 ? "±" : "+-";
  const bool seconds = diff.options.by == DiffBy::run;
  std::string text = how(diff);
  text += fmt::format("{} {} holds for all rows together in 999 of 1000 comparisons; -: no significant difference.\n\n",
                      diff.options.total ? "Functions including all that they call."
                                         : "The functions themselves (--total: including all that they call).",
                      plus_minus);
  text += fmt::format("{:>9} {:>9} {:>10} {}  Verdict          Function (file:line)\n",
                      seconds ? "Before s" : "Before %", seconds ? "After s" : "After %", "Difference",
                      fill("", 8, Cut::right, style.charset));
  std::size_t rows = 0;
  for (const ProfileDiff::Row& row : diff.rows) {
    if (rows == static_cast<std::size_t>(style.top)) break;
    ++rows;
    text += fmt::format("{:>9} {:>9} {:>10} {}  {:<15}  {}\n", amount(row.before, diff.options.by, false),
                        amount(row.after, diff.options.by, false), amount(row.difference(), diff.options.by, true),
                        fill(plus_minus + amount(row.interval, diff.options.by, false), 8, Cut::right, style.charset),
                        verdict_text(row, others(diff)), function_of(row, style));
  }
  if (rows < diff.rows.size()) text += fmt::format("{:>42}{} more (--top)\n", "", diff.rows.size() - rows);
  return text + "\n" + summary(diff);
}

}  // namespace luaspy
