#include "profile/profile.h"

#include <malloc.h>

#include <catch2/catch.hpp>
#include <map>
#include <optional>

#include "profile/function_table.h"
#include "support/framed.h"

namespace luaspy::profile_test {
namespace {

Stack stack_of(int depth, int last) {
  Stack stack;
  for (int i = 0; i < depth; ++i) stack.push_back({Frame::Kind::lua, "function", "a.lua", i, 0});
  stack.push_back({Frame::Kind::lua, "leaf", "b.lua", last, 0});
  return stack;
}

FramedSample sample_of(Stack stack) {
  FramedSample sample;
  sample.quality.stacks = 1;
  sample.vm_state = VmState::interpreting;
  sample.stack = std::move(stack);
  return sample;
}

std::vector<Timeline::Run> runs(const Timeline& timeline) {
  std::vector<Timeline::Run> runs;
  timeline.for_each([&](const Timeline::Run& run) { runs.push_back(run); });
  return runs;
}

// A tick every 10 ns.
class Adder {
 public:
  explicit Adder(Profile& profile, std::int64_t weight = 10) : profile_(profile), weight_(weight) {}
  void operator()(const ThreadInfo& thread, const FramedSample& sample, std::int64_t more = 0) {
    at_ += weight_ + more;
    add_framed(profile_, thread, {at_, weight_ + more}, sample);
  }

 private:
  Profile& profile_;
  std::int64_t weight_, at_ = 0;
};

std::size_t allocated() { return ::mallinfo2().uordblks; }

}  // namespace

TEST_CASE("a timeline tells what it was told, equal samples as one run", "[unit]") {
  Timeline timeline;
  CHECK(runs(timeline).empty());
  const std::int64_t hour = 3'600'000'000'000;
  std::int64_t at = 0;
  for (const auto& [situation, weight] : std::vector<std::pair<std::uint32_t, std::int64_t>>{
           {7, 0}, {7, 127}, {300, 128}, {0, hour}, {0, hour}, {7, 1}, {0xffffffff, 5}})
    timeline.add(situation, at, at + weight, weight), at += weight;
  timeline.add(0xffffffff, at + 10, at + 20, 10);  // after 10 ns without a sample
  timeline.add(3, at + 15, at + 22, 7);            // begins before the last one ended: moved behind it
  const std::vector<Timeline::Run> told = runs(timeline);
  REQUIRE(told.size() == 7);
  const auto is = [&](std::size_t i, std::uint32_t situation, std::int64_t start, std::int64_t samples,
                      std::int64_t weight) {
    CHECK(told[i].situation == situation);
    CHECK(told[i].start_ns == start);
    CHECK(told[i].samples == samples);
    CHECK(told[i].end_ns == start + weight);
    CHECK(told[i].weight == weight);
  };
  is(0, 7, 0, 2, 127);
  is(1, 300, 127, 1, 128);
  is(2, 0, 255, 2, 2 * hour);
  is(3, 7, 255 + 2 * hour, 1, 1);
  is(4, 0xffffffff, 256 + 2 * hour, 1, 5);
  is(5, 0xffffffff, 271 + 2 * hour, 1, 10);
  is(6, 3, 281 + 2 * hour, 1, 7);
}

TEST_CASE("what a sample weighs need not be how long it lasted", "[unit]") {
  Timeline timeline;
  const std::int64_t much = std::int64_t{1} << 50;
  timeline.add(1, 100, 100, much);
  timeline.add(1, 100, 100, 5);  // at the same moment: one run
  timeline.add(1, 300, 300, 0);
  timeline.add(1, 400, 400, 0);
  timeline.add(2, 400, 450, 7);
  timeline.add(2, 460, 470, 10);  // its weight is its duration
  const std::vector<Timeline::Run> told = runs(timeline);
  REQUIRE(told.size() == 5);
  const auto is = [&](std::size_t i, std::int64_t start, std::int64_t end, std::int64_t samples, std::int64_t weight) {
    CHECK(told[i].start_ns == start);
    CHECK(told[i].end_ns == end);
    CHECK(told[i].samples == samples);
    CHECK(told[i].weight == weight);
  };
  is(0, 100, 100, 2, much + 5);
  is(1, 300, 300, 1, 0);
  is(2, 400, 400, 1, 0);
  is(3, 400, 450, 1, 7);
  is(4, 460, 470, 1, 10);
}

TEST_CASE("a profile of bytes adds up what its samples stand for", "[unit]") {
  Profile profile;
  profile.about.unit = Unit::bytes;
  const ThreadInfo thread = {1, "one"};
  add_framed(profile, thread, {10, 4096}, sample_of(stack_of(3, 1)));
  add_framed(profile, thread, {20, 64}, sample_of(stack_of(3, 2)));
  add_framed(profile, thread, {20, 40}, sample_of(stack_of(3, 1)));
  CHECK(profile.samples() == 3);
  CHECK(profile.weight() == 4200);
  const std::vector<Timeline::Run> told = runs(profile.timeline(0));
  REQUIRE(told.size() == 3);
  CHECK(profile.counts().at({0, told[0].situation}).samples == 2);
  CHECK(profile.counts().at({0, told[0].situation}).weight == 4136);
  CHECK(told[1].start_ns == 20);
  CHECK(told[1].end_ns == 20);
  CHECK(told[1].weight == 64);
  const FunctionTable functions = functions_of(profile, false);
  CHECK(total_cost(profile, usual_by(profile.about.unit)) == 4200);
  CHECK(costs(profile, functions, By::weight).front().total == 4200);
}

TEST_CASE("a profile counts samples by thread and stack, and keeps their order", "[unit]") {
  Profile profile;
  const ThreadInfo first = {1, "one"}, second = {2, "two"};
  const Stack deep = stack_of(3, 1), other = stack_of(3, 2), outer(deep.begin(), deep.end() - 1);
  Adder add(profile), add_second(profile);
  for (const Stack& stack : {deep, deep, other, outer, deep, Stack{}}) add(first, sample_of(stack));
  add_second(second, sample_of(other));
  CHECK(profile.samples() == 7);
  CHECK(profile.frames().size() == 5);
  const std::vector<Timeline::Run> told = runs(profile.timeline(0));
  REQUIRE(told.size() == 5);
  std::size_t at = 0;
  for (const Stack& expected : {deep, other, outer, deep, Stack{}}) {
    Stack stack;
    for (const FrameId id : profile.stack(profile.situations()[told[at].situation].stack))
      stack.push_back(profile.frames()[id]);
    CHECK(stack == expected);
    ++at;
  }
  CHECK(told[0].situation == told[3].situation);
  CHECK(profile.counts().at({0, told[0].situation}).samples == 3);
  CHECK(profile.counts().at({0, told[0].situation}).weight == 30);
  CHECK(profile.counts().at({0, told[1].situation}).samples == 1);
  CHECK(profile.counts().at({1, told[1].situation}).samples == 1);
  CHECK(profile.counts().size() == 5);
  const StackId both = profile.situations()[told[1].situation].stack;
  CHECK(profile.stack_counts().at(both).samples == 2);
  CHECK(profile.stack_counts(1).at(both).samples == 1);
  CHECK(profile.weight() == 70);
}

TEST_CASE("profiles are added up, and their threads stay apart", "[unit]") {
  const auto made = [](int last, int times) {
    Profile profile;
    Adder add(profile);
    for (int i = 0; i < times; ++i) add({7, "main", 0, ""}, sample_of(stack_of(3, last)));
    profile.add_lost(Loss::late, 0);
    profile.add_idle(2);
    profile.about.command = "lua a.lua";
    profile.about.pid = 7;
    profile.about.luas = {last == 1 ? "Lua 5.4" : "Lua 5.1"};
    profile.about.complete = last == 1;
    profile.about.duration_ns = 1000;
    return profile;
  };
  for (const bool by_file : {false, true}) {
    Profile all(false);
    all.add_all(made(1, 3), by_file ? std::optional(marker("[first]")) : std::nullopt);
    all.add_all(made(2, 5), by_file ? std::optional(marker("[second]")) : std::nullopt);
    all.resolve_names();
    CHECK(all.samples() == 8);
    CHECK(all.weight() == 80);
    CHECK(all.losses(Loss::late) == 2);
    CHECK(all.idle() == 4);
    CHECK(all.quality().stacks == 8);
    CHECK(all.samples_in(VmState::interpreting) == 8);
    REQUIRE(all.threads().size() == 2);  // one number, two processes
    CHECK(all.threads()[1].process == "lua a.lua");
    CHECK(all.about.duration_ns == 2000);
    CHECK(all.about.luas == std::vector<std::string>{"Lua 5.4", "Lua 5.1"});
    CHECK(!all.about.complete);
    std::map<std::string, std::int64_t> roots, leaves;
    for (const auto& [stack, amount] : all.stack_counts()) {
      const std::vector<FrameId> frames = all.stack(stack);
      REQUIRE(frames.size() == (by_file ? 5 : 4));
      roots[describe(all.frames()[frames.front()], false)] += amount.samples;
      leaves[describe(all.frames()[frames.back()], false)] += amount.samples;
    }
    const auto began = [](std::int64_t when) {
      Profile profile;
      Adder add(profile);
      add({7, "main", 7, "lua", 1, when}, sample_of(stack_of(3, 1)));
      return profile;
    };
    Profile parts(false);
    for (const std::int64_t when : {100, 100, 200, 0, 0}) parts.add_all(began(when), std::nullopt);
    CHECK(parts.threads().size() == 4);  // the first two are one; of the last it is not known
    if (by_file) CHECK(roots == std::map<std::string, std::int64_t>{{"[first]", 3}, {"[second]", 5}});
    else CHECK(roots.size() == 1);
  }
}

TEST_CASE("the same stack in another state of the VM is another situation", "[unit]") {
  Profile profile;
  Adder add(profile);
  FramedSample collecting = sample_of(stack_of(3, 1)), asleep = collecting;
  collecting.vm_state = VmState::collecting;
  asleep.state = Sample::State::sleeping;
  for (const FramedSample& sample : {sample_of(stack_of(3, 1)), collecting, asleep, collecting})
    add({1, "one"}, sample);
  REQUIRE(profile.situations().size() == 3);
  CHECK(profile.situations()[1].vm_state == VmState::collecting);
  CHECK(profile.situations()[2].state == Sample::State::sleeping);
  CHECK(runs(profile.timeline(0)).size() == 4);
  REQUIRE(profile.stack_counts().size() == 1);
  CHECK(profile.stack_counts().begin()->second.samples == 4);
}

TEST_CASE("names are settled anew as samples come", "[unit]") {
  Profile profile;
  Adder add(profile);
  const auto f = [](const char* name) { return sample_of({{Frame::Kind::lua, name, "a.lua", 5, 0}}); };
  add({1, "one"}, f("function"));
  profile.resolve_names();
  CHECK(profile.frames()[FrameId{0}].name == "function");
  for (int i = 0; i < 2; ++i) {
    add({1, "one"}, f("work"));
    add({1, "one"}, f("function"));
    profile.resolve_names();
    REQUIRE(profile.frames().size() == 2);
    CHECK(profile.frames()[FrameId{0}].name == "work");
    CHECK(profile.frames()[FrameId{1}].name == "work");
  }
  for (int i = 0; i < 3; ++i) add({1, "one"}, f("play"));
  profile.resolve_names();
  CHECK(profile.frames()[FrameId{0}].name == "play");
}

TEST_CASE("many samples take little memory", "[unit][figures]") {
  constexpr int count = 1'000'000;
  std::vector<FramedSample> samples;
  for (int i = 0; i < 200; ++i) samples.push_back(sample_of(stack_of(3, i * 79 % 200)));
  const std::size_t before = allocated();
  Profile equal, in_order, counted(false);
  Adder add_equal(equal, 10'000'000), add_in_order(in_order, 10'000'000), add_counted(counted, 10'000'000);
  for (int i = 0; i < count; ++i) add_equal({1, "one"}, samples[1]);
  CHECK(equal.samples() == count);
  CHECK(allocated() - before < 20'000);
  for (int i = 0; i < count; ++i) add_in_order({1, "one"}, samples[static_cast<std::size_t>(i % 200)], i % 1000);
  CHECK(runs(in_order.timeline(0)).size() == count);
  CHECK(allocated() - before < 9 * count);
  const std::size_t with_order = allocated();
  for (int i = 0; i < count; ++i) add_counted({1, "one"}, samples[static_cast<std::size_t>(i % 200)]);
  CHECK(runs(counted.timeline(0)).empty());
  CHECK(allocated() - with_order < 100'000);
  CHECK(counted.counts().size() == 200);
}

TEST_CASE("functions that begin on the same line are told apart by their prototypes", "[unit]") {
  Profile profile;
  const auto function = [](const char* name, std::uint32_t prototype) {
    Frame frame = {Frame::Kind::lua, name, "a.lua", 1, 1};
    frame.prototype = prototype;
    return frame;
  };
  Adder add(profile);
  for (int i = 0; i < 3; ++i) add({1, "lua"}, sample_of({function("alpha", 7)}));
  add({1, "lua"}, sample_of({function("f", 7)}));
  add({1, "lua"}, sample_of({function("beta", 9)}));
  add({1, "lua"}, sample_of({function("function", 30)}));
  add({1, "lua"}, sample_of({function("function", 20)}));
  add({1, "lua"}, sample_of({function("function", 10)}));
  profile.resolve_names();
  const FunctionTable table = functions_of(profile, false);
  CHECK(table.texts == std::vector<std::string>{"alpha (a.lua:1)", "beta (a.lua:1)", "function (a.lua:1#3)",
                                                "function (a.lua:1#2)", "function (a.lua:1)"});
  CHECK(costs(profile, table, By::samples)[0].own == 4);
  CHECK(describe(profile.frames().values().back(), true) == "function (a.lua:1)");
}

TEST_CASE("a function keeps the name where it lives, and what callers call it does not count then", "[unit]") {
  Profile profile;
  const auto function = [](const char* name, bool own, std::uint32_t prototype = 7) {
    Frame frame = {Frame::Kind::lua, name, "a.lua", 1, 1};
    frame.prototype = prototype;
    frame.own_name = own;
    return frame;
  };
  const auto texts = [&] {
    profile.resolve_names();
    std::vector<std::string> all;
    for (const Frame& frame : profile.frames()) all.push_back(describe(frame, false));
    return all;
  };
  using Texts = std::vector<std::string>;
  Adder add(profile);
  for (int i = 0; i < 5; ++i) add({1, "lua"}, sample_of({function("f", false)}));
  add({1, "lua"}, sample_of({function("callback", false)}));
  CHECK(texts() == Texts{"f (a.lua:1)", "f (a.lua:1)"});
  add({1, "lua"}, sample_of({function("shop.buy", true)}));
  CHECK(texts() == Texts{"shop.buy (a.lua:1)", "shop.buy (a.lua:1)", "shop.buy (a.lua:1)"});
  add({1, "lua"}, sample_of({function("shop.sell", true)}));
  CHECK(texts() == Texts{"f (a.lua:1)", "f (a.lua:1)", "shop.buy (a.lua:1)", "shop.sell (a.lua:1)"});
  // Another prototype of that line; and a name that a caller uses, too.
  add({1, "lua"}, sample_of({function("shop.sell", true, 9)}));
  for (int i = 0; i < 9; ++i) add({1, "lua"}, sample_of({function("shop.buy", false)}));
  CHECK(texts() == Texts{"shop.buy (a.lua:1)", "shop.buy (a.lua:1)", "shop.buy (a.lua:1)", "shop.sell (a.lua:1)",
                         "shop.sell (a.lua:1#2)", "shop.buy (a.lua:1)"});
  const FunctionTable table = functions_of(profile, false);
  CHECK(costs(profile, table, By::samples)[0].own == 16);
}

TEST_CASE("a thread is another one after an exec, and when its number is used again", "[unit]") {
  Profile profile;
  const ThreadInfo first = {7, "lua", 7, "lua a.lua", 1, 100}, after_exec = {7, "lua", 7, "lua b.lua", 2, 100},
                   later = {7, "lua", 7, "lua b.lua", 2, 200}, other = {7, "lua", 8, "lua c.lua", 2, 200};
  for (const ThreadInfo& thread : {first, after_exec, later, other, first})
    add_framed(profile, thread, {}, FramedSample());
  REQUIRE(profile.threads().size() == 4);
  CHECK(profile.threads()[1].process == "lua b.lua");
  CHECK(profile.threads()[3].process == "lua c.lua");
  CHECK(profile.stack_counts(0).begin()->second.samples == 2);
}

TEST_CASE("the time of pauses is charged to the samples of time", "[unit]") {
  Profile profile;
  const Tick tick = {10'000'000, 10'000'000};
  add_framed(profile, {1, "one"}, tick, FramedSample());
  profile.about.duration_ns = 40'000'000;
  profile.charge_pauses();
  CHECK(profile.weight() == 10'000'000);  // there was none
  profile.about.sampled_ns = 20'000'000;
  profile.charge_pauses();
  CHECK(profile.weight() == 20'000'000);
  profile.charge_pauses();
  CHECK(profile.weight() == 20'000'000);
  add_framed(profile, {1, "one"}, tick, FramedSample());
  CHECK(profile.weight() == 40'000'000);
  CHECK(profile.stack_counts().begin()->second.squares == 2 * 4e14);
  std::int64_t lasted = 0;
  profile.timeline(0).for_each([&](const Timeline::Run& run) { lasted += run.end_ns - run.start_ns; });
  CHECK(lasted == 20'000'000);  // as it was seen
  profile.about.sampled_ns = 1, profile.about.duration_ns = std::int64_t{1} << 61;
  profile.charge_pauses();
  CHECK(profile.weight() == 40'000'000);  // no file makes a sum that does not fit
}

// The outermost frames of a server are its event loop: they do nothing themselves, and are in every stack.
TEST_CASE("functions without own cost: Lua first, native ones last", "[unit]") {
  Profile profile;
  Adder add(profile);
  const ThreadInfo thread = {1, "main", 1, "server", 1, 1};
  const auto native_frame = [](std::string name) {
    return Frame{Frame::Kind::native, std::move(name), "server", 0, 0};
  };
  Stack stack = {native_frame("main"), native_frame("server+0x51340"), {Frame::Kind::lua, "handle", "app.lua", 3, 0}};
  const auto add_leaf = [&](Frame leaf) {
    stack.push_back(std::move(leaf));
    add(thread, sample_of(stack));
    stack.pop_back();
  };
  add_leaf({Frame::Kind::lua, "render", "app.lua", 9, 0});
  add_leaf(native_frame("memcpy"));
  stack.pop_back();
  add_leaf(native_frame("memcpy"));
  const FunctionTable functions = functions_of(profile, false);
  std::vector<std::string> names;
  for (const std::uint32_t function : most_expensive(costs(profile, functions, By::samples), functions))
    names.push_back(functions.functions[function].name);
  CHECK(names == std::vector<std::string>{"memcpy", "render", "handle", "main", "server+0x51340"});
}

TEST_CASE("threads that were only seen asleep are left out beside others", "[unit]") {
  const ThreadInfo busy = {1, "busy"}, sleeper = {2, "sleeper"}, waiter = {3, "waiter"};
  const auto asleep = [](FramedSample sample) {
    sample.state = Sample::State::sleeping, sample.vm_state = VmState::none;
    return sample;
  };
  Profile profile;
  Adder add(profile);
  FramedSample waiting = sample_of(stack_of(1, 3));
  waiting.state = Sample::State::waiting;
  for (int i = 0; i < 3; ++i) add(sleeper, asleep(sample_of(stack_of(1, 1))));
  profile.leave_out_sleepers();
  CHECK(profile.samples() == 3);  // there is nothing else
  add(busy, sample_of(stack_of(1, 2))), add(busy, asleep(sample_of(stack_of(2, 2)))), add(waiter, waiting);
  profile.leave_out_sleepers();
  CHECK(profile.samples() == 3);
  CHECK(profile.weight() == 30);
  CHECK(profile.quality().stacks == 3);
  CHECK((profile.samples_in(VmState::none) == 1 && profile.samples_in(VmState::interpreting) == 2));
  CHECK((profile.idle() == 3 && profile.sleepers().threads == 1 && profile.sleepers().ticks == 3));
  CHECK(profile.stack_counts(0).empty());
  CHECK(runs(profile.timeline(0)).empty());
  CHECK(runs(profile.timeline(1)).size() == 2);
  profile.leave_out_sleepers();
  CHECK(profile.sleepers().threads == 1);  // once

  // One of another profiler's file that stands for several.
  Profile counted;
  add_framed(counted, sleeper, {10, 70, 7}, asleep(sample_of(stack_of(1, 1))));
  add_framed(counted, busy, {20, 10, 1}, sample_of(stack_of(1, 2)));
  counted.leave_out_sleepers();
  CHECK((counted.samples() == 1 && counted.samples_in(VmState::none) == 0 && counted.idle() == 7));
}

}  // namespace luaspy::profile_test
