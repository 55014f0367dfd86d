// What report prints for the sample profile, in each of its views.

#include <fmt/format.h>

#include <sstream>

#include "output/folded.h"
#include "output/summary.h"
#include "profile/recorded.h"
#include "report/call_tree.h"
#include "report/function_view.h"
#include "report/profile_diff.h"
#include "report/report_text.h"
#include "report/source_listing.h"
#include "support/golden.h"
#include "support/sample_profile.h"

namespace luaspy::golden_report_test {
namespace {

constexpr std::string_view source =
    "-- work\n\n\n\n\n\n\n\n\nlocal function work(x)\n  local y = x\n\tx = x * y .. \"\\x1b[31m "
    "\x1b[31m\xe2\x80\xae\"\n  -- a comment\n  return x:gsub(\"a\", y)\nend\n\n\n\n\n\n\n\n\n\n\n\n\n\n\nwork(1)\n";

std::string function_views(const Profile& profile, const TextStyle& style, const std::string& name) {
  const FunctionTable functions = functions_of(profile, false);
  const auto found = find_functions(functions, costs(profile, functions, style.by), name);
  if (!found) return found.error().text + "\n";
  std::string text;
  for (const std::uint32_t function : *found)
    text += function_text(profile, functions, function_view(profile, functions, function, style.by), style);
  return text;
}

std::string tree(const Profile& profile, const TextStyle& style, bool lines, double least) {
  const FunctionTable functions = functions_of(profile, lines);
  return call_tree_text(call_tree(profile, functions, style.by), functions, least, style);
}

std::string all_views(const TextStyle& style) {
  const Profile profile = sample_profile(style.unit);
  std::string text = functions_text(profile, style) + "\n" + lines_text(profile, style) + "\n" +
                     states_text(profile, style) + "\n" + threads_text(profile, style) + "\n";
  text += heaps_text(profile, style) + "\n";
  for (const char* const name : {"work", "gsub|<script>", "main (lua5.4)", "wrk", "("})
    text += "== " + std::string(name) + "\n" + function_views(profile, style, name);
  text += "\n" + tree(profile, style, false, 1) + "\n" + tree(profile, style, true, 30) + "\n";
  const Result<std::string> file = find_source(profile, "main.lua");
  REQUIRE(file);
  text += source_listing(source, line_costs(profile, *file, style.by), total_cost(profile, style.by), style);
  text += source_listing("x = 1\n", line_costs(profile, *file, style.by), total_cost(profile, style.by), style);
  return text + find_source(profile, "other.lua").error().text + "\n";
}

std::string folded_diff(Unit unit, Compared by, bool lines) {
  WriteOptions options;
  options.lines = lines;
  std::ostringstream out;
  write_folded_diff(sample_profile(unit), sample_profile(unit), {by}, options, out);
  return out.str();
}

}  // namespace

TEST_CASE("report in UTF-8, by samples", "[golden]") { golden::check("report.txt", all_views({})); }
TEST_CASE("report in ASCII, by time, few rows", "[golden]") {
  golden::check("report.ascii.txt", all_views({By::weight, 2, Charset::ascii}));
}

TEST_CASE("report of bytes, and of objects", "[golden]") {
  golden::check("report.bytes.txt", all_views({By::weight, 20, Charset::utf8, Unit::bytes}));
  golden::check("report.objects.txt", all_views({By::weight, 3, Charset::utf8, Unit::objects}));
}

TEST_CASE("summaries of each unit", "[golden]") {
  std::string text;
  for (const Unit unit : {Unit::nanoseconds, Unit::bytes, Unit::objects}) {
    const Profile profile = sample_profile(unit);
    text += fmt::format("== {}\n{}\n{}", name(unit), hottest_text(profile), summary_text(profile));
    for (const auto& [key, value] : recorded(profile)) text += fmt::format("{}: {}\n", key, value);
  }
  golden::check("summaries.txt", text);
}

using Verdict = ProfileDiff::Verdict;

TEST_CASE("differences in text", "[golden]") {
  ProfileDiff diff;
  diff.rows = {{"work (a.lua:10)", "work (a.lua:12)", 0.2, 0.24, 0.021, Verdict::slower},
               {"a;b<script>\x1b[31m", "a;b<script>\x1b[31m", 0.3, 0.27, 0.02, Verdict::faster},
               {"rest (a.lua:1)", "rest (a.lua:1)", 0.2, 0.19, 0.005, Verdict::like_others},
               {"", "näher (b.lua:3)", 0, 0.03, 0.01, Verdict::appeared},
               {"gone (a.lua:9)", "", 0.02, 0, 0.01, Verdict::vanished},
               {"", "once [C]", 0, 0.002, 0.01, Verdict::none},
               {"same [C]", "same [C]", 0.1, 0.1, 0.011, Verdict::none},
               {"more (a.lua:5)", "more (a.lua:5)", 0.148, 0.19, 0.051, Verdict::perhaps, 14'752}};
  diff.others = 0.95;
  diff.before = {10'000, 10.01, 9'980'000'000}, diff.after = {12'000, 12.02, 11'990'000'000};
  std::string text = diff_text(diff, {});
  diff.options = {DiffBy::weight, true};
  text += "\n" + diff_text(diff, {By::samples, 3, Charset::ascii});
  diff.options.by = DiffBy::run;
  diff.can_tell = false;
  text += "\n" + diff_text(diff, {});
  golden::check("report.diff.txt", text);
  golden::check("report.diff.folded", folded_diff(Unit::nanoseconds, Compared::shares, false) +
                                          folded_diff(Unit::nanoseconds, Compared::weights, true));
}

TEST_CASE("differences of bytes in text", "[golden]") {
  ProfileDiff diff;
  diff.unit = Unit::bytes;
  diff.rows = {{"work (a.lua:10)", "work (a.lua:12)", 0.2, 0.24, 0.021, Verdict::slower},
               {"parse (a.lua:1)", "parse (a.lua:1)", 0.3, 0.27, 0.02, Verdict::faster}};
  diff.others = 0.95;
  diff.before = {10'000, 10.01, 12'345'678}, diff.after = {12'000, 12.02, 1'500'000'000'000};
  std::string text = diff_text(diff, {});
  diff.options.by = DiffBy::weight, diff.others = 1;
  diff.rows = {{"work (a.lua:10)", "work (a.lua:12)", 1'050'000'000, 2e9, 210'000, Verdict::slower},
               {"", "näher (b.lua:3)", 0, 900, 30, Verdict::appeared},
               {"parse (a.lua:1)", "parse (a.lua:1)", 9000, 8100, 20.4, Verdict::faster}};
  text += "\n" + diff_text(diff, {});
  diff.unit = Unit::objects, diff.options.by = DiffBy::run;
  text += "\n" + diff_text(diff, {});
  for (const Compared by : {Compared::shares, Compared::weights}) text += "\n" + folded_diff(Unit::bytes, by, false);
  golden::check("report.bytes.diff.txt", text);
}

}  // namespace luaspy::golden_report_test
