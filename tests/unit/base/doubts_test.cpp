#include "base/doubts.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "output/flamegraph.h"
#include "output/summary.h"
#include "profile/profile.h"
#include "support/framed.h"
#include "top/top_lines.h"
#include "top/top_plain.h"

namespace luaspy::doubts_test {
namespace {

// Samples that give no reason for doubts.
DoubtFacts facts(std::int64_t samples) {
  DoubtFacts facts;
  facts.pid = 42;
  facts.has_lua = true;
  facts.samples = samples;
  facts.quality.stacks = facts.quality.with_lua = facts.quality.native_complete = samples;
  return facts;
}

bool has_one(const DoubtFacts& of, const std::string& words) {
  const std::vector<std::string> found = doubts(of);
  return found.size() == 1 && found.front().find(words) != std::string::npos &&
         found.front().ends_with("please run `luaspy doctor --pid 42` while it runs and send us its report");
}

Profile profile_without_lua(int samples) {
  Profile profile;
  profile.about.pid = 42;
  profile.about.lua_mapped = true;
  FramedSample sample;
  sample.quality.stacks = sample.quality.native_complete = 1;
  sample.stack = {{Frame::Kind::native, "main", "host", 0, 0}};
  for (int i = 1; i <= samples; ++i) add_framed(profile, {1, "one", 42, "host"}, {i * 10, 10}, sample);
  return profile;
}

const std::string no_lua = "doubtful: Lua is in the process, but no sample has Lua";

}  // namespace

TEST_CASE("nothing is doubted without a reason, or of few samples", "[unit]") {
  CHECK(doubts(facts(0)).empty());
  CHECK(doubts(facts(1'000'000)).empty());
  DoubtFacts all_wrong = facts(99);
  all_wrong.quality = {};
  all_wrong.quality.stacks = all_wrong.quality.unclaimed = all_wrong.quality.fresh_mismatch = 99;
  CHECK(doubts(all_wrong).empty());
}

TEST_CASE("Lua is in the process and no sample has it", "[unit]") {
  DoubtFacts without = facts(100);
  without.quality.with_lua = 0;
  CHECK(has_one(without, "Lua is in the process, but no sample has Lua"));
  without.has_lua = false;
  CHECK(doubts(without).empty());
  without = facts(100);
  without.quality.with_lua = 1;
  CHECK(doubts(without).empty());
}

TEST_CASE("interpreter frames without a state are doubted above 1 %", "[unit]") {
  DoubtFacts some = facts(1000);
  some.quality.unclaimed = 10;
  CHECK(doubts(some).empty());
  some.quality.unclaimed = 11;
  CHECK(has_one(some, "in 1.1 % of the samples the interpreter runs, but its Lua functions were not found"));
}

TEST_CASE("what was not matched is doubted above 2 % of the samples with Lua", "[unit]") {
  DoubtFacts some = facts(1000);
  some.quality.with_lua = some.quality.fresh_mismatch = 500;  // a difference in number only does not matter: doubts()
  some.quality.not_joined = 10;
  CHECK(doubts(some).empty());
  some.quality.not_joined = 11;
  CHECK(has_one(some, "in 2.2 % of the samples the C and Lua parts of the stack could not be joined"));
}

TEST_CASE("incomplete native parts are doubted above 1 %", "[unit]") {
  DoubtFacts some = facts(200);
  some.quality.native_complete = 198;
  CHECK(doubts(some).empty());
  some.quality.native_complete = 197;
  CHECK(has_one(some, "in 1.5 % of the samples the native part of the stack is incomplete"));
}

TEST_CASE("CPU time that was not sampled is the first doubt", "[unit]") {
  constexpr std::int64_t second = 1'000'000'000;
  DoubtFacts some = facts(500);
  some.rate = 100;
  some.cpu.lua_ns = 10 * second;
  some.sampled_cpu_ns = 9 * second;
  CHECK(doubts(some).empty());
  some.sampled_cpu_ns = 8'500'000'000;
  some.losses[static_cast<std::size_t>(Loss::late)] = 100;
  some.losses[static_cast<std::size_t>(Loss::unreadable)] = 50;
  std::vector<std::string> found = doubts(some);
  REQUIRE(found.size() == 1);  // which names what was lost, too
  CHECK(found.front() ==
        "only 85 % of the 10.0 s of CPU time that was used meanwhile was sampled; looks without a sample: 100 late "
        "ticks, 50 stack unreadable; luaspy got no CPU in time, as the machine is busy: a lower --rate than 100 Hz "
        "loses fewer");
  some = facts(500);
  some.rate = 100;
  some.cpu.lua_ns = 8 * second, some.cpu.unknown_ns = 2 * second, some.sampled_cpu_ns = 8 * second;
  found = doubts(some);
  REQUIRE(found.size() == 1);
  CHECK(found.front() ==
        "only 80 % of the 10.0 s of CPU time that was used meanwhile was sampled; 2.0 s were used by processes that "
        "ended before luaspy saw whether they run Lua");
  // Of few samples, it may be chance; programs without Lua are not sampled.
  some.cpu.lua_ns = second, some.cpu.unknown_ns = 0, some.sampled_cpu_ns = 7 * second / 10;
  CHECK(doubts(some).empty());
  some.cpu.lua_ns = 10 * second, some.cpu.other_ns = 90 * second, some.sampled_cpu_ns = 10 * second;
  CHECK(doubts(some).empty());
}

TEST_CASE("Lua functions without a place are doubted above 1 % of the samples with Lua", "[unit]") {
  DoubtFacts some = facts(1000);
  some.quality.with_lua = 500;
  some.quality.function_gone = some.quality.no_debug_info = 5;
  CHECK(doubts(some).empty());
  some.quality.function_gone = 6;
  REQUIRE(doubts(some).size() == 1);
  CHECK(doubts(some)[0] ==
        "in 1.2 % of the samples with Lua the place of a Lua function is not known (?): it was freed before luaspy "
        "could read it");
  some.quality.function_gone = 0;
  some.quality.no_debug_info = 6;
  REQUIRE(doubts(some).size() == 1);
  CHECK(doubts(some)[0].find("it was compiled without debug information") != std::string::npos);
}

TEST_CASE("ticks lost are doubted above 10 %, not those that were left out on purpose", "[unit]") {
  DoubtFacts some = facts(900);
  some.losses[static_cast<std::size_t>(Loss::late)] = 40;
  some.losses[static_cast<std::size_t>(Loss::unreadable)] = 60;
  some.losses[static_cast<std::size_t>(Loss::skipped)] = some.losses[static_cast<std::size_t>(Loss::left_out)] = 9000;
  CHECK(doubts(some).empty());
  ++some.losses[static_cast<std::size_t>(Loss::late)];
  CHECK(has_one(some, "10 % of the ticks were lost (41 late ticks, 60 stack unreadable)"));
}

TEST_CASE("ticks that come late have a remedy, and need no report", "[unit]") {
  DoubtFacts some = facts(900);
  some.rate = 10'000;
  some.losses[static_cast<std::size_t>(Loss::late)] = 200;
  some.losses[static_cast<std::size_t>(Loss::moved)] = 20;
  const std::string
      remedy = "; luaspy got no CPU in time, as the machine is busy: a lower --rate than 10000 Hz loses fewer";
  REQUIRE(doubts(some).size() == 1);
  CHECK(doubts(some)[0] ==
        "20 % of the ticks were lost (200 late ticks, 20 woke while being read): what ran then may differ from what "
        "the samples show" +
            remedy);
  some.cpu.lua_ns = 1'000'000'000, some.sampled_cpu_ns = 800'000'000;
  REQUIRE(doubts(some).size() == 1);
  CHECK(doubts(some)[0] ==
        "only 80 % of the 1.0 s of CPU time that was used meanwhile was sampled; looks without a sample: 200 late "
        "ticks, 20 woke while being read" +
            remedy);
}

TEST_CASE("at a high rate the remedy of lost ticks is a lower one, whatever they are", "[unit]") {
  DoubtFacts some = facts(900);
  some.losses[static_cast<std::size_t>(Loss::moved)] = 200;
  CHECK(has_one(some, "18 % of the ticks were lost (200 woke while being read)"));
  some.rate = 2000;
  REQUIRE(doubts(some).size() == 1);
  CHECK(doubts(some)[0].ends_with("; a lower --rate than 2000 Hz loses fewer"));
  some.losses[static_cast<std::size_t>(Loss::refused)] = 300;
  CHECK(doubts(some)[0].ends_with("; another process traces the threads, or luaspy has lost the right to"));
}

TEST_CASE("a report is not asked for of a program that has ended by then", "[unit]") {
  Profile profile = profile_without_lua(100);
  profile.about.duration_ns = 50'000'000;
  const std::string once = doubts(profile.doubt_facts()).at(0);
  CHECK(once.find("--pid") == std::string::npos);
  CHECK(once.ends_with(
      "; if it runs for some seconds, please run `luaspy doctor` on it meanwhile and send us its report"));
  profile.about.duration_ns = 5'000'000'000;
  CHECK(doubts(profile.doubt_facts()).at(0).find("luaspy doctor --pid 42") != std::string::npos);
}

TEST_CASE("of few samples the summary says how far shares may be off, and what takes more", "[unit]") {
  Profile profile = profile_without_lua(64);
  profile.about.rate = 100;
  CHECK(summary_text(profile).find("few samples: shares may be off by 12 points by chance; -r 2000 takes 20 times as "
                                   "many\n") != std::string::npos);
  profile.about.rate = 1000;
  CHECK(summary_text(profile).find("few samples") == std::string::npos);
  Profile many = profile_without_lua(100);
  many.about.rate = 100;
  CHECK(summary_text(many).find("few samples") == std::string::npos);
}

TEST_CASE("where the cause is known, no report is asked for", "[unit]") {
  DoubtFacts some = facts(1000);
  some.quality.remote = 500, some.quality.at_system_call = 500;
  some.cpu.system_share = 0.01;
  REQUIRE(doubts(some).size() == 1);  // the share of system calls is explained by it
  CHECK(doubts(some)[0].starts_with("50.0 % of the samples were taken from another CPU"));
  CHECK(doubts(some)[0].find("send us") == std::string::npos);
  some.quality.remote = 0;
  CHECK(has_one(some, "50.0 % of the samples were taken at returns from system calls"));
}

TEST_CASE("samples at system calls are doubted beyond 4 standard deviations and 3 points", "[unit]") {
  CHECK_FALSE(system_call_doubt(42, 99, 99, 0));
  CHECK_FALSE(system_call_doubt(42, 1000, 900, -1));
  // 10 % of 100,000: a standard deviation is 0.095 points, so 3 points decide.
  CHECK_FALSE(system_call_doubt(42, 100'000, 13'000, 0.1));
  CHECK(system_call_doubt(42, 100'000, 13'001, 0.1));
  // 50 % of 400: a standard deviation is 2.5 points, so 4 of them decide.
  CHECK_FALSE(system_call_doubt(42, 400, 240, 0.5));
  CHECK(system_call_doubt(42, 400, 241, 0.5));
  CHECK_FALSE(system_call_doubt(42, 1000, 0, 0.5));  // page faults are also system time
  CHECK(system_call_doubt(42, 1000, 560, 0.015)
            ->starts_with("56.0 % of the samples were taken at returns from system calls, but at most 1.5 % of the "
                          "CPU time is system time"));
}

TEST_CASE("a doubt comes first wherever a profile is shown", "[unit]") {
  const Profile doubtful = profile_without_lua(100), sure = profile_without_lua(99);
  CHECK(summary_text(doubtful).starts_with(no_lua));
  CHECK(summary_text(sure).find("doubtful") == std::string::npos);
  std::ostringstream page, sure_page;
  write_flamegraph(doubtful, {}, page);
  write_flamegraph(sure, {}, sure_page);
  CHECK(page.str().find("\"doubts\":[\"Lua is in the process") != std::string::npos);
  CHECK(sure_page.str().find("\"doubts\":") == std::string::npos);
}

TEST_CASE("top shows a doubt in its head", "[unit]") {
  TopCounts counts;
  counts.samples = counts.quality.stacks = counts.quality.native_complete = 100;
  TopTarget target;
  target.pid = 42, target.lua_mapped = true, target.window = 5;
  CHECK(plain_table(counts, target).find("\n# " + no_lua) != std::string::npos);
  TopView view(1, Charset::ascii);
  view.show(counts);
  const auto lines = [&] {
    std::string text;
    for (const TopLine& line : draw_top(view, counts, target, {80, 24})) {
      for (const TopSpan& span : line.spans) text += span.text;
      text += '\n';
    }
    return text;
  };
  CHECK(lines().find("\n " + no_lua) != std::string::npos);
  CHECK(lines().find("send us its report") != std::string::npos);
  counts.samples = 99;
  CHECK(lines().find("doubtful") == std::string::npos);
  CHECK(plain_table(counts, target).find("doubtful") == std::string::npos);
}

}  // namespace luaspy::doubts_test
