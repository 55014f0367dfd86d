// Differences of recordings: no difference is reported for two runs of the same program, and real
// differences are found. Timelines are simulated: a function runs for some samples, in phases or
// not.

#include "report/profile_diff.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <iostream>
#include <random>
#include <sstream>

#include "output/flamegraph.h"
#include "support/framed.h"

namespace luaspy::profile_diff_test {
namespace {

using Verdict = ProfileDiff::Verdict;
constexpr std::int64_t ms = 1'000'000;

struct Program {
  std::vector<double> costs = {20,  15, 12,  10,  8, 7,   6,   5,   4,  3,
                               2.5, 2,  1.5, 1.2, 1, 0.8, 0.5, 0.3, 0.2};  // of its functions, "f0" and so on
  double stay = 0;   // the probability that a sample has the same function as the one before
  double phase = 0;  // how much the first half of the functions is preferred to the other in one phase, and vice versa
                     // in the next
  int phase_samples = 400;
  int first_line = 1;  // where its functions are defined
  std::string file = "a.lua";
};

Profile run(const Program& program, int samples, unsigned seed, int rate = 1000) {
  Profile profile;
  std::minstd_rand random(seed * 2654435761U + 17);
  std::vector<StackId> stacks;
  const StackId root = profile.stacks().intern(
      {empty_stack, profile.stacks().intern(Frame{Frame::Kind::lua, "main chunk", program.file, 0, 0})});
  for (std::size_t i = 0; i < program.costs.size(); ++i) {
    const Frame frame = {Frame::Kind::lua, "f" + std::to_string(i), program.file,
                         program.first_line + static_cast<int>(i) * 10, 0};
    stacks.push_back(profile.stacks().intern({root, profile.stacks().intern(frame)}));
  }
  std::vector<double> one = program.costs, other = program.costs;
  for (std::size_t i = 0; i < one.size(); ++i) (i < one.size() / 2 ? one : other)[i] *= 1 + program.phase;
  std::discrete_distribution<std::size_t> in_one(one.begin(), one.end()), in_other(other.begin(), other.end());
  std::uniform_real_distribution<double> uniform(0, 1);
  const std::uint32_t thread = profile.index_of({1, "one"});
  const int offset = static_cast<int>(random() % static_cast<unsigned>(2 * program.phase_samples));
  Sample facts;
  std::size_t now = 0;
  const std::int64_t weight = 1000 * ms / rate;
  for (int i = 0; i < samples; ++i) {
    if (i == 0 || uniform(random) >= program.stay)
      now = (i + offset) / program.phase_samples % 2 == 0 ? in_one(random) : in_other(random);
    profile.add(thread, {(i + 1) * weight, weight}, facts, stacks[now]);
  }
  profile.about.duration_ns = samples * weight;
  return profile;
}

ProfileDiff matched_diff(Profile before, const Profile& after) {
  const FunctionMatching matching = match_functions(before, after);
  return profile_diff(before, after, {}, matching);
}

const ProfileDiff::Row* row_of(const ProfileDiff& diff, const std::string& name) {
  for (const ProfileDiff::Row& row : diff.rows) {
    if (row.before_text.starts_with(name + " ") || row.after_text.starts_with(name + " ")) return &row;
  }
  return nullptr;
}

int claims(const ProfileDiff& diff) {
  return static_cast<int>(std::ranges::count_if(diff.rows, [](const ProfileDiff::Row& row) {
    return row.verdict != Verdict::none && row.verdict != Verdict::perhaps;
  }));
}
bool has_perhaps(const ProfileDiff& diff) {
  return std::ranges::find(diff.rows, Verdict::perhaps, &ProfileDiff::Row::verdict) != diff.rows.end();
}

}  // namespace

TEST_CASE("nothing is claimed of two runs of the same", "[unit][figures]") {
  int runs = 0, with_claims = 0, with_perhaps = 0;
  for (const auto& [program, samples] : std::vector<std::pair<Program, int>>{{{}, 4000},
                                                                             {{.stay = 0.9}, 4000},
                                                                             {{.stay = 0.97}, 6000},
                                                                             {{.phase = 1, .phase_samples = 150}, 4000},
                                                                             {{.stay = 0.8, .phase = 1}, 6000},
                                                                             {{}, 300},
                                                                             {{.stay = 0.8}, 500}}) {
    for (unsigned seed = 0; seed < 60; ++seed) {
      const Profile before = run(program, samples, 2 * seed),
                    after = run(program, samples + static_cast<int>(seed) * 10, 2 * seed + 1);
      const DiffBy by = seed % 3 == 2 ? DiffBy::weight : DiffBy::shares;
      ++runs;
      const ProfileDiff diff = profile_diff(before, after, {by, seed % 6 == 1});
      with_claims += claims(diff) != 0;
      with_perhaps += has_perhaps(diff);
    }
  }
  std::cout << "differences claimed in " << with_claims << " of " << runs << " pairs of runs of the same, perhaps in "
            << with_perhaps << "\n";
  CHECK(runs >= 400);
  CHECK(with_claims == 0);
  CHECK(with_perhaps * 100 <= runs * 10);  // 5 of 100, and four standard deviations
}

TEST_CASE("a function of 20 % that takes 20 % longer is found in 20,000 samples", "[unit][figures]") {
  Program slower;
  slower.costs[0] *= 1.2;
  for (const double stay : {0.0, 0.3}) {
    int found = 0, wrong = 0;
    constexpr int runs = 60;
    for (unsigned seed = 0; seed < runs; ++seed) {
      Program now = slower, then;
      now.stay = then.stay = stay;
      const int samples = stay == 0 ? 20'000 : 40'000;
      const ProfileDiff diff = profile_diff(run(then, samples, 2 * seed), run(now, samples, 2 * seed + 1), {});
      found += row_of(diff, "f0")->verdict == Verdict::slower;
      for (const ProfileDiff::Row& row : diff.rows)
        wrong += row.before_text != row_of(diff, "f0")->before_text &&
                 (row.verdict == Verdict::slower || row.verdict == Verdict::faster);
    }
    std::cout << "found in " << found << " of " << runs << " (stay " << stay << ")"
              << ", others called slower or faster: " << wrong << "\n";
    CHECK(found * 100 >= runs * 95);
    CHECK(wrong == 0);
  }
}

TEST_CASE("from 14.8 % to 23.4 % is a change in 1,200 samples; what is less certain says what it needs", "[unit]") {
  const auto of_one = [](double share) {
    Program program;
    double rest = 0;
    for (std::size_t i = 1; i < program.costs.size(); ++i) rest += program.costs[i];
    program.costs[0] = rest * share / (1 - share);
    return program;
  };
  int told = 0, certain = 0, wrong = 0;
  constexpr int runs = 100;
  for (unsigned seed = 0; seed < runs; ++seed) {
    const ProfileDiff diff = profile_diff(run(of_one(0.148), 1200, 2 * seed), run(of_one(0.234), 1200, 2 * seed + 1),
                                          {});
    const ProfileDiff::Row& row = *row_of(diff, "f0");
    certain += row.verdict == Verdict::slower;
    told += row.verdict == Verdict::slower || row.verdict == Verdict::perhaps;
    if (row.verdict == Verdict::perhaps) {
      CHECK(row.needed > 1200);
      CHECK(row.needed < 12'000);
      CHECK(diff_text(diff, {}).find("perhaps +") != std::string::npos);
      CHECK(diff_text(diff, {}).find(std::to_string(row.needed) + " samples on each side") != std::string::npos);
    }
    wrong += claims(diff) > (row.verdict == Verdict::slower ? 1 : 0);
    CHECK(row.interval > 0.04);
    CHECK(row.interval < 0.16);
  }
  std::cout << "14.8 % to 23.4 % in 1,200 samples: told in " << told << " of " << runs << ", as certain in " << certain
            << "\n";
  CHECK(told >= 85);
  CHECK(certain >= 55);
  CHECK(wrong <= 5);
}

// What a difference needs depends on the smaller recording: twice the larger one adds little.
TEST_CASE("recordings of different sizes need as many samples as those of one size", "[unit][figures]") {
  Program slower;
  slower.costs[0] *= 1.6;
  int perhaps = 0, told_by_needed = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const ProfileDiff diff = profile_diff(run({}, 30'000, 2 * seed), run(slower, 300, 2 * seed + 1), {});
    const ProfileDiff::Row& row = *row_of(diff, "f0");
    if (row.verdict != Verdict::perhaps) continue;
    ++perhaps;
    // Two recordings of 594 samples tell as much as these two, and `perhaps` is not far from certain.
    CHECK(row.needed > 590);
    CHECK(row.needed < 2000);
    const int samples = static_cast<int>(2 * row.needed);
    const ProfileDiff larger = profile_diff(run({}, samples, 1000 + seed), run(slower, samples, 2000 + seed), {});
    told_by_needed += row_of(larger, "f0")->verdict == Verdict::slower;
  }
  INFO(told_by_needed << " of " << perhaps);
  CHECK(perhaps >= 5);
  CHECK(told_by_needed * 2 >= perhaps);
}

// A function that takes twice as long makes the shares of all others shrink alike.
TEST_CASE("what shrinks like most others is not perhaps faster", "[unit][figures]") {
  Program slower;
  slower.costs[0] *= 2;
  int others = 0, told = 0;
  constexpr int runs = 40;
  for (unsigned seed = 0; seed < runs; ++seed) {
    const ProfileDiff diff = profile_diff(run({}, 6000, 2 * seed), run(slower, 6000, 2 * seed + 1), {});
    if (diff.others > 0.99) continue;
    for (const ProfileDiff::Row& row : diff.rows) {
      if (row.before_text.starts_with("f0 ")) continue;
      others += row.verdict == Verdict::like_others;
      told += row.verdict == Verdict::perhaps;
    }
  }
  std::cout << "of the others, called perhaps: " << told << " in " << runs << " comparisons, like most: " << others
            << "\n";
  CHECK(told <= 6);
}

// One function has all samples of both: it has no variance, and no picture of it may show a change.
TEST_CASE("the noise of recordings without a difference to measure is not 0", "[unit]") {
  const ProfileDiff diff = profile_diff(run({{100}}, 2000, 1), run({{100}}, 2000, 2), {});
  CHECK(diff.can_tell);
  CHECK(diff.noise > 3);
  CHECK(profile_diff(run({}, 2000, 1), run({}, 2000, 2), {}).noise >= diff.noise);
}

TEST_CASE("what gets less of the whole because something else gets slower is not called faster", "[unit]") {
  Program slower;
  slower.costs[0] *= 2;
  const Profile before = run({}, 100'000, 1), after = run(slower, 120'000, 2);
  const ProfileDiff shares = profile_diff(before, after, {});
  CHECK(row_of(shares, "f0")->verdict == Verdict::slower);
  CHECK(row_of(shares, "f1")->verdict == Verdict::like_others);
  CHECK(std::abs(shares.others - 1 / 1.2) < 0.02);
  CHECK(shares.rows.front().before_text.starts_with("f0 "));
  // The same work, once in 100 s and once in 120 s: other functions take as long as before.
  const ProfileDiff run_to_end = profile_diff(before, after, {DiffBy::run, false});
  CHECK(row_of(run_to_end, "f0")->verdict == Verdict::slower);
  CHECK(std::abs(row_of(run_to_end, "f0")->difference() - 20) < 2);
  CHECK(claims(run_to_end) == 1);
  // The main chunk is in all samples of both.
  const ProfileDiff total = profile_diff(before, after, {DiffBy::shares, true});
  CHECK(row_of(total, "main")->verdict == Verdict::none);
  CHECK(row_of(total, "f0")->verdict == Verdict::slower);
  CHECK(row_of(profile_diff(after, before, {}), "f0")->verdict == Verdict::faster);
}

TEST_CASE("functions that moved are the same; those that came or went are told", "[unit]") {
  Program moved, grown;
  moved.first_line = 3;
  grown.costs.push_back(10);
  const ProfileDiff diff = matched_diff(run({}, 10'000, 1), run(moved, 10'000, 2));
  CHECK(claims(diff) == 0);
  CHECK(row_of(diff, "f0")->moved());
  CHECK(row_of(diff, "f0")->after_text == "f0 (a.lua:3)");
  const Profile small = run({}, 20'000, 3), large = run(grown, 20'000, 4);
  const ProfileDiff more = profile_diff(small, large, {}), less = profile_diff(large, small, {});
  CHECK(row_of(more, "f19")->verdict == Verdict::appeared);
  CHECK(row_of(more, "f19")->before_text.empty());
  CHECK(row_of(less, "f19")->verdict == Verdict::vanished);
}

TEST_CASE("two versions of a program are compared, wherever their files are", "[unit]") {
  Program moved;
  moved.first_line = 3;
  for (const char* const file : {"/srv/new/a.lua", "b.lua"}) {
    moved.file = file;
    const ProfileDiff diff = matched_diff(run({}, 10'000, 1), run(moved, 10'000, 2));
    CHECK(claims(diff) == 0);
    CHECK(row_of(diff, "f0")->moved());
    CHECK(row_of(diff, "f0")->before_text == "f0 (a.lua:1)");
    CHECK(row_of(diff, "f0")->after_text == std::string("f0 (") + file + ":3)");
  }
}

// Samples of bytes, each with its own time and weight; `heavier`: the factor for the weights of
// "f0".
Profile allocations(std::int64_t heavier, unsigned seed) {
  Profile profile;
  profile.about.unit = Unit::bytes;
  std::minstd_rand random(seed);
  constexpr int samples = 20'000;
  for (int i = 1; i <= samples; ++i) {
    const std::int64_t function = random() % 5;
    FramedSample sample;
    sample.stack = {{Frame::Kind::lua, "f" + std::to_string(function), "a.lua", static_cast<int>(function) + 1, 0}};
    const std::int64_t weight = (1000 + static_cast<std::int64_t>(random() % 1000)) * (function == 0 ? heavier : 1);
    add_framed(profile, {1, "one"}, {i * ms, weight}, sample);
  }
  profile.about.duration_ns = samples * ms;
  return profile;
}

TEST_CASE("bytes are compared by what samples weigh, not by their number", "[unit]") {
  const Profile before = allocations(1, 1), same = allocations(1, 2), after = allocations(2, 3);
  for (const DiffBy by : {DiffBy::shares, DiffBy::weight, DiffBy::run}) {
    CHECK(claims(profile_diff(before, same, {by, false})) == 0);
    const ProfileDiff diff = profile_diff(before, after, {by, false});
    CHECK(diff.unit == Unit::bytes);
    CHECK(diff.after.weight == after.weight());
    REQUIRE(row_of(diff, "f0") != nullptr);
    CHECK(row_of(diff, "f0")->verdict == Verdict::slower);  // in the text: more
    CHECK(diff_text(diff, {}).find(by == DiffBy::shares ? "larger share +" : "more +") != std::string::npos);
    CHECK(diff_text(diff, {}).find("slower") == std::string::npos);
    // No sample is lost where the recording ends.
    double sum = 0;
    for (const ProfileDiff::Row& row : diff.rows) sum += row.after;
    const double expected = by == DiffBy::shares ? 1
                                                 : static_cast<double>(after.weight()) / (by == DiffBy::run ? 1 : 20);
    CHECK(std::abs(sum / expected - 1) < 1e-9);
  }
  const ProfileDiff run = profile_diff(before, after, {DiffBy::run, false});
  CHECK(std::abs(row_of(run, "f0")->after / row_of(run, "f0")->before - 2) < 0.1);
}

TEST_CASE("too little is not compared", "[unit]") {
  for (const int samples : {0, 1, 5}) {
    const ProfileDiff diff = profile_diff(run({}, samples, 1), run({{50, 50}}, 1000, 2), {});
    CHECK(!diff.can_tell);
    CHECK(claims(diff) == 0);
    CHECK(diff_text(diff, {}).find("too short") != std::string::npos);
    const std::string text = diff_text(diff, {});
    CHECK(text.find("±", text.find("Function (file")) == std::string::npos);  // no interval is better than one of 2000
                                                                              // %
  }
}

TEST_CASE("by time, a program that gets less of the CPU is no program that became faster", "[unit]") {
  Profile before = run({}, 20'000, 1), after = run({}, 20'000, 2);
  CHECK(diff_text(profile_diff(before, after, {DiffBy::weight}), {}).find("Most functions changed") ==
        std::string::npos);
  after.about.duration_ns = after.about.duration_ns * 5 / 4;  // it waited for the rest
  const ProfileDiff diff = profile_diff(before, after, {DiffBy::weight});
  CHECK(diff.rates == Approx(0.8).margin(0.03));
  const std::string text = diff_text(diff, {});
  CHECK(text.find("Most functions changed by -") != std::string::npos);
  CHECK(text.find("--by samples compares shares") != std::string::npos);
}

TEST_CASE("by time, samples that stand for another part of the CPU time are no difference of the program", "[unit]") {
  Profile before = run({}, 4000, 1), after = run({}, 4000, 2);
  before.about.cpu.lua_ns = after.about.cpu.lua_ns = 4'000'000'000;
  before.about.sampled_cpu_ns = 3'200'000'000, after.about.sampled_cpu_ns = 3'960'000'000;
  const std::string text = diff_text(profile_diff(before, after, {DiffBy::weight}), {});
  CHECK(text.find("80 % of the CPU time that was used before, and for 99 % after") != std::string::npos);
  CHECK(diff_text(profile_diff(before, after, {}), {}).find("of the CPU time") == std::string::npos);
}

TEST_CASE("by time, the picture compares recordings of different durations second by second", "[unit]") {
  const Profile before = run({}, 4000, 1), after = run({}, 8000, 2);
  const auto scale = [&](Compared by) {
    std::ostringstream out;
    write_flamegraph_diff(before, after, {by, 3, 0.003, 0.03}, {}, out);
    const std::string page = out.str();
    const std::size_t at = page.find("\"scale\":");
    REQUIRE(at != std::string::npos);
    return std::stod(page.substr(at + 8));
  };
  CHECK(scale(Compared::rates) == Approx(2));
  CHECK(scale(Compared::weights) == Approx(1));
  CHECK(scale(Compared::shares) == Approx(2));
}

}  // namespace luaspy::profile_diff_test
