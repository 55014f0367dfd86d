#include "profile.h"

#include <malloc.h>

#include <catch2/catch.hpp>

namespace luaspy {
namespace {

Stack stack_of(int depth, int last) {
  Stack stack;
  for (int i = 0; i < depth; ++i) stack.push_back({Frame::Kind::lua, "function", "a.lua", i, 0});
  stack.push_back({Frame::Kind::lua, "leaf", "b.lua", last, 0});
  return stack;
}

Sample sample_of(Stack stack) {
  Sample sample;
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

std::size_t allocated() { return ::mallinfo2().uordblks; }

}  // namespace

TEST_CASE("a timeline tells what it was told, equal samples as one run", "[unit]") {
  Timeline timeline;
  CHECK(runs(timeline).empty());
  const std::int64_t hour = 3'600'000'000'000;
  for (const auto& [stack, weight] : std::vector<std::pair<std::uint32_t, std::int64_t>>{{7, 0}, {7, 127}, {300, 128}, {0, hour}, {0, hour}, {7, 1}, {0xffffffff, 5}})
    timeline.add(stack, weight);
  const std::vector<Timeline::Run> told = runs(timeline);
  REQUIRE(told.size() == 5);
  const auto is = [&](std::size_t i, std::uint32_t stack, std::int64_t samples, std::int64_t weight) {
    CHECK(told[i].stack == stack);
    CHECK(told[i].samples == samples);
    CHECK(told[i].weight_ns == weight);
  };
  is(0, 7, 2, 127);
  is(1, 300, 1, 128);
  is(2, 0, 2, 2 * hour);
  is(3, 7, 1, 1);
  is(4, 0xffffffff, 1, 5);
}

TEST_CASE("a profile counts samples by thread and stack, and keeps their order", "[unit]") {
  Profile profile;
  const Profile::Thread first = {1, "one"}, second = {2, "two"};
  const Stack deep = stack_of(3, 1), other = stack_of(3, 2), outer(deep.begin(), deep.end() - 1);
  for (const Stack& stack : {deep, deep, other, outer, deep, Stack{}}) profile.add(first, 10, sample_of(stack));
  profile.add(second, 10, sample_of(other));
  CHECK(profile.samples() == 7);
  CHECK(profile.frames().size() == 5);
  const std::vector<Timeline::Run> told = runs(profile.timeline(0));
  REQUIRE(told.size() == 5);
  std::size_t at = 0;
  for (const Stack& expected : {deep, other, outer, deep, Stack{}}) {
    Stack stack;
    for (const Profile::FrameId id : profile.stack(told[at].stack)) stack.push_back(profile.frames()[id]);
    CHECK(stack == expected);
    ++at;
  }
  CHECK(told[0].stack == told[3].stack);
  CHECK(profile.counts().at({0, told[0].stack}) == 3);
  CHECK(profile.counts().at({0, told[1].stack}) == 1);
  CHECK(profile.counts().at({1, told[1].stack}) == 1);
  CHECK(profile.counts().size() == 5);
}

TEST_CASE("a sample that repeats its thread's last one counts like it", "[unit]") {
  Profile profile;
  Sample again;
  again.again = true;
  profile.add({1, "one"}, 10, sample_of(stack_of(3, 1)));
  profile.add({2, "two"}, 10, sample_of(stack_of(3, 2)));
  for (int i = 0; i < 4; ++i) profile.add({1, "one"}, 10, again);
  CHECK(profile.samples() == 6);
  CHECK(profile.quality().stacks == 6);
  CHECK(profile.samples_in(VmState::interpreting) == 6);
  REQUIRE(runs(profile.timeline(0)).size() == 1);
  CHECK(runs(profile.timeline(0)).front().samples == 5);
  CHECK(runs(profile.timeline(0)).front().weight_ns == 50);
  CHECK(profile.hottest().front().own == 5);
}

TEST_CASE("many samples take little memory", "[unit]") {
  constexpr int count = 1'000'000;
  const std::size_t before = allocated();
  Profile equal, in_order, counted(false);
  for (int i = 0; i < count; ++i) equal.add({1, "one"}, 10'000'000, sample_of(stack_of(3, 1)));
  CHECK(equal.samples() == count);
  CHECK(allocated() - before < 20'000);
  for (int i = 0; i < count; ++i) in_order.add({1, "one"}, 10'000'000 + i % 1000, sample_of(stack_of(3, i % 200 * 79 % 200)));
  CHECK(runs(in_order.timeline(0)).size() == count);
  CHECK(allocated() - before < 9 * count);
  const std::size_t with_order = allocated();
  for (int i = 0; i < count; ++i) counted.add({1, "one"}, 10'000'000, sample_of(stack_of(3, i % 200 * 79 % 200)));
  CHECK(runs(counted.timeline(0)).empty());
  CHECK(allocated() - with_order < 100'000);
  CHECK(counted.counts().size() == 200);
}

}  // namespace luaspy
