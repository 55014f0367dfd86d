#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/profile_diff.h"

namespace luaspy {
namespace {

using Verdict = ProfileDiff::Verdict;

// Rows show shares and time as numbers, of which the heads of the columns say the unit; bytes and
// objects as texts.
bool shows_numbers(const ProfileDiff& diff) {
  return diff.options.by == DiffBy::shares || diff.unit == Unit::nanoseconds;
}

std::string amount(double value, const ProfileDiff& diff, bool with_sign) {
  if (!shows_numbers(diff))
    return (with_sign && value >= 0 ? "+" : "") + cost_text(std::llround(value), By::weight, diff.unit);
  const double shown_value = diff.options.by == DiffBy::run ? value : 100 * value;
  const int digits = diff.options.by == DiffBy::run ? 3 : 1;
  return with_sign ? fmt::format("{:+.{}f}", shown_value, digits) : fmt::format("{:.{}f}", shown_value, digits);
}

// "Before" or "After" as the head of a column.
std::string head(std::string_view which, const ProfileDiff& diff) {
  const bool in_all = diff.options.by == DiffBy::run;
  if (shows_numbers(diff)) return fmt::format("{} {}", which, in_all ? "s" : "%");
  return fmt::format("{}{}", which, in_all ? "" : "/s");
}

// What became of a function that has more, or less. Which became slower is known only of runs of the same work: a
// larger share may come from others that became faster, more time from more calls.
struct Words {
  std::string_view more, less, with;  // with: what a number of functions has before the first two, as "2 with more
                                      // time"
};
Words words_of(const ProfileDiff& diff) {
  if (diff.options.by == DiffBy::shares) return {"larger share", "smaller share", "with a "};
  if (diff.unit != Unit::nanoseconds) return {"more", "less", ""};
  return diff.options.by == DiffBy::run ? Words{"slower", "faster", ""} : Words{"more time", "less time", "with "};
}

// The factor by which most functions' shares changed, if it is worth mentioning; else 1.
double worth_mentioning(double factor) { return factor < 0.99 || factor > 1.01 ? factor : 1; }
double others(const ProfileDiff& diff) { return worth_mentioning(diff.others); }

std::string verdict_text(const ProfileDiff::Row& row, const ProfileDiff& diff) {
  const auto change = [&](std::string_view word) {
    return fmt::format("{} {:+.0f} %", word, 100 * (row.after / row.before / others(diff) - 1));
  };
  switch (row.verdict) {
    case Verdict::slower:
      return change(words_of(diff).more);
    case Verdict::faster:
      return change(words_of(diff).less);
    case Verdict::like_others:
      return "like most";
    case Verdict::appeared:
      return "new";
    case Verdict::vanished:
      return "gone";
    case Verdict::perhaps:
      return row.before > 0 ? change("perhaps") : "perhaps new";
    case Verdict::none:
      break;
  }
  return row.before_text.empty() ? "- (after only)" : row.after_text.empty() ? "- (before only)" : "-";
}

std::string function_of(const ProfileDiff::Row& row, const TextStyle& style) {
  if (!row.moved()) return shown(row.before_text.empty() ? row.after_text : row.before_text, style);
  return fmt::format("{} {} {}", shown(row.before_text, style), style.charset == Charset::utf8 ? "→" : "->",
                     shown(row.after_text, style));
}

// How to read the amounts of another unit than time.
std::string how_of_weights(const ProfileDiff& diff) {
  const std::string_view head = cost_heading(By::weight, diff.unit), unit = name(diff.unit);
  switch (diff.options.by) {
    case DiffBy::shares:
      return fmt::format(
          "Shares of all {}, in percent: if one function has more, the shares of all others shrink. "
          "--by time compares {} for each second.\n",
          unit, unit);
    case DiffBy::weight:
      return fmt::format(
          "{} for each second of the recording, of all threads together: meaningful if the load was the "
          "same. --by run compares runs of the same work.\n",
          head);
    case DiffBy::run:
      break;
  }
  return fmt::format("Total {}: meaningful if both recordings cover the same work from its start to its end.\n", unit);
}

std::string how_of_shares(const ProfileDiff& diff) {
  constexpr std::string_view shares =
      "Shares of all samples, in percent: if one function gets slower, the shares of all "
      "others shrink.";
  const auto used = [](const ProfileDiff::Whole& of) { return 100 * of.cpu_seconds / of.seconds; };
  const auto is_known = [](const ProfileDiff::Whole& of) { return of.cpu_seconds > 0 && of.seconds > 0; };
  if (!is_known(diff.before) || !is_known(diff.after)) return fmt::format("{} --by time compares seconds.\n", shares);
  return fmt::format(
      "What became slower is said by time: --by time compares equal loads (before, {:.0f} % of a CPU were used; after, "
      "{:.0f} %), --by run compares runs of the same work.\n{}\n",
      used(diff.before), used(diff.after), shares);
}

std::string how_of_time(const ProfileDiff& diff) {
  switch (diff.options.by) {
    case DiffBy::shares:
      return how_of_shares(diff);
    case DiffBy::weight:
      return "Percent of the time of the recording, of all threads together: meaningful if the load was the same. "
             "--by run compares runs of the same work.\n";
    case DiffBy::run:
      break;
  }
  return "Total seconds: meaningful if both recordings cover the same work from its start to its end.\n";
}

std::string how(const ProfileDiff& diff) {
  const bool of_time = diff.unit == Unit::nanoseconds;
  std::string text = of_time ? how_of_time(diff) : how_of_weights(diff);
  if (diff.options.by == DiffBy::shares && others(diff) != 1) {
    text += fmt::format(
        "Most functions' shares changed by {:+.1f} %, as they do when a few others change; larger and smaller are "
        "relative to that.\n",
        100 * (diff.others - 1));
  }
  if (worth_mentioning(diff.rates) != 1) {
    text += fmt::format(
        "Most functions changed by {:+.1f} %, as they do when the load is another, or the program gets more or less of "
        "the CPU. --by samples compares shares, which that does not change.\n",
        100 * (diff.rates - 1));
  }
  if (of_time && diff.options.by != DiffBy::shares &&
      std::abs(diff.before.covered - diff.after.covered) > least_ratio) {
    text += fmt::format(
        "The samples stand for {:.0f} % of the CPU time that was used before, and for {:.0f} % after: the rest is "
        "missing here.\n",
        100 * diff.before.covered, 100 * diff.after.covered);
  }
  return text;
}

// What it takes to be sure of the largest difference that may be chance.
std::string about_perhaps(const ProfileDiff& diff) {
  const auto row = std::ranges::find(diff.rows, Verdict::perhaps, &ProfileDiff::Row::verdict);
  if (row == diff.rows.end()) return {};
  const ProfileDiff::Whole& longer = diff.before.samples > diff.after.samples ? diff.before : diff.after;
  const double seconds = longer.seconds * static_cast<double>(row->needed) /
                         static_cast<double>(std::max<std::int64_t>(longer.samples, 1));
  return fmt::format(
      "perhaps: chance makes such a difference, in any function, in up to 5 of 100 comparisons. If the first of them "
      "is real, {} samples on each side would show it: {:.0f} s at this rate.\n",
      row->needed, std::ceil(seconds));
}

std::string summary(const ProfileDiff& diff) {
  const auto whole = [&](const ProfileDiff::Whole& of) {
    const std::string amount = diff.unit == Unit::samples ? "" : ", " + amount_text(of.weight, diff.unit);
    return fmt::format("{} samples{}{}{}", of.samples, amount,
                       diff.unit == Unit::nanoseconds ? " of threads' time" : "",
                       of.seconds > 0 ? fmt::format(" in {:.2f} s", of.seconds) : "");
  };
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(diff.rows, verdict, &ProfileDiff::Row::verdict);
  };
  const auto slower = count(Verdict::slower) + count(Verdict::appeared),
             faster = count(Verdict::faster) + count(Verdict::vanished);
  std::string text = fmt::format("total: before {}; after {}; ", whole(diff.before), whole(diff.after));
  if (!diff.can_tell) return text + "too short to tell a difference from chance.\n";
  const Words words = words_of(diff);
  if (slower + faster == 0) text += "no significant difference.\n";
  else
    text += fmt::format("{0} {5}{1} or new, {2} {5}{3} or gone, {4} without a significant difference.\n", slower,
                        words.more, faster, words.less, count(Verdict::none) + count(Verdict::perhaps), words.with);
  return text + about_perhaps(diff);
}

}  // namespace

std::string diff_text(const ProfileDiff& diff, const TextStyle& style) {
  const std::string plus_minus = style.charset == Charset::utf8 ? "±" : "+-";
  std::string text = how(diff);
  for (const std::string& sentence : diff.ambiguous) text += displayable(sentence, style.charset) + "\n";
  text += fmt::format("{} {} holds for all rows together in 999 of 1000 comparisons; -: no significant difference.\n\n",
                      diff.options.total ? "Functions including all that they call."
                                         : "The functions themselves (--total: including all that they call).",
                      plus_minus);
  const int width = shows_numbers(diff) ? 9 : 10, interval_width = shows_numbers(diff) ? 8 : 10,
            verdict_width = diff.options.by == DiffBy::shares ? 19 : 16;
  const auto add_row = [&](std::string_view before, std::string_view after, std::string_view difference,
                           std::string_view interval) {
    text += fmt::format("{:>{}} {:>{}} {:>10} {}  ", before, width, after, width, difference,
                        fill(interval, interval_width, Cut::right, style.charset));
  };
  add_row(head("Before", diff), head("After", diff), "Difference", "");
  text += fmt::format("{:<{}}  Function (file:line)\n", "Verdict", verdict_width);
  std::size_t rows = 0;
  for (const ProfileDiff::Row& row : diff.rows) {
    if (rows == static_cast<std::size_t>(style.top)) break;
    ++rows;
    add_row(amount(row.before, diff, false), amount(row.after, diff, false), amount(row.difference(), diff, true),
            diff.can_tell ? plus_minus + amount(row.interval, diff, false) : "");
    const bool is_more = row.verdict == Verdict::slower || row.verdict == Verdict::appeared,
               is_less = row.verdict == Verdict::faster || row.verdict == Verdict::vanished;
    text += fmt::format("{}  {}\n",
                        style.paint(is_more   ? Ink::hot
                                    : is_less ? Ink::c
                                              : Ink::plain,
                                    fmt::format("{:<{}}", verdict_text(row, diff), verdict_width)),
                        function_of(row, style));
  }
  if (rows < diff.rows.size()) text += fmt::format("{:>42}{} more (--top)\n", "", diff.rows.size() - rows);
  return text + "\n" + summary(diff);
}

}  // namespace luaspy
