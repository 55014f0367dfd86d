#include "sampling/last_samples.h"

#include <catch2/catch.hpp>

namespace luaspy::last_samples_test {
namespace {

constexpr std::int64_t second = 1'000'000'000;

Frame frame(const char* name) { return {Frame::Kind::lua, name, "a.lua", 1, 0}; }

ThreadId thread(EventTables& tables, int tid) { return tables.threads.intern({tid, "lua", 1}); }

Sample asleep_in(EventTables& tables, const char* name) {
  Sample sample;
  sample.state = Sample::State::sleeping;
  sample.stack = tables.stacks.intern({frame("main"), frame(name)});
  sample.vm_state = VmState::c;
  sample.quality.stacks = 1;
  return sample;
}

Sample again(std::int64_t stopped_ns = 0) {
  Sample sample;
  sample.again = true;
  sample.stopped_ns = stopped_ns;
  return sample;
}

Sample sample_in(EventTables& tables, const std::string& function, Sample::State state) {
  Sample sample;
  sample.state = state;
  sample.stack = tables.stacks.intern(Stack{{Frame::Kind::lua, function, "a.lua", 1, 1}});
  return sample;
}

}  // namespace

TEST_CASE("a sample that repeats its thread's last one becomes like it, but for its own stop", "[unit]") {
  EventTables tables;
  LastSamples last(tables);
  const ThreadId one = thread(tables, 1), two = thread(tables, 2);
  Sample first = asleep_in(tables, "read"), second_sample = asleep_in(tables, "write"), repeated = again(7);
  first.stopped_ns = 5;
  last.complete(one, 10, first);
  last.complete(two, 10, second_sample);
  last.complete(one, 20, repeated);
  CHECK(!repeated.again);
  CHECK(repeated.stack == first.stack);
  CHECK(repeated.state == Sample::State::sleeping);
  CHECK(repeated.vm_state == VmState::c);
  CHECK(repeated.quality.stacks == 1);
  CHECK(repeated.stopped_ns == 7);
}

TEST_CASE("a loss in between changes nothing, and without a last sample there is none", "[unit]") {
  EventTables tables;
  LastSamples last(tables);
  const ThreadId one = thread(tables, 1), two = thread(tables, 2);
  Sample unknown = again(), first = asleep_in(tables, "read"), lost, repeated = again();
  last.complete(two, 10, unknown);
  CHECK(unknown.loss == Loss::left_out);
  last.complete(one, 10, first);
  lost.loss = Loss::moved;
  last.complete(one, 20, lost);
  CHECK(lost.loss == Loss::moved);
  CHECK(lost.stack == empty_stack);
  last.complete(one, 30, repeated);
  CHECK(repeated.stack == first.stack);
}

TEST_CASE("renewed tables have what threads are asleep in, and nothing else", "[unit]") {
  EventTables tables;
  LastSamples last(tables);
  const ThreadId runs = thread(tables, 1), left = thread(tables, 2), sleeps = thread(tables, 3);
  Sample sample = asleep_in(tables, "long ago");
  last.complete(left, 0, sample);
  sample = asleep_in(tables, "runs"), sample.state = Sample::State::running;
  last.complete(runs, 15 * second, sample);
  sample = asleep_in(tables, "read");
  last.complete(sleeps, 16 * second, sample);
  const Stack before = tables.stacks.frames_of(sample.stack);
  last.renew_tables(17 * second);
  REQUIRE(tables.threads.size() == 1);
  CHECK(tables.threads[ThreadId{0}].tid == 3);
  CHECK(tables.stacks.frames().size() == 2);
  Sample repeated = again();
  last.complete(thread(tables, 3), 18 * second, repeated);
  CHECK(tables.stacks.frames_of(repeated.stack) == before);
  Sample unknown = again();
  last.complete(thread(tables, 2), 18 * second, unknown);
  CHECK(unknown.loss == Loss::left_out);
}

TEST_CASE("renewed tables know nothing of the frames that they had", "[unit]") {
  EventTables tables;
  LastSamples last(tables);
  const auto as_start = [&](const char* name) {
    return tables.stacks.frames()[tables.stacks.with_part(tables.stacks.intern(frame(name)), Frame::Part::start)];
  };
  CHECK(as_start("before").name == "before");
  last.renew_tables(second);
  CHECK(as_start("after").name == "after");  // it has the number that the other one had
  CHECK(as_start("after").part == Frame::Part::start);
  CHECK(tables.stacks.frames().size() == 2);
}

TEST_CASE("programs that make functions or threads without end fill the tables", "[unit]") {
  EventTables tables;
  LastSamples last(tables);
  CHECK(!last.tables_are_full());
  SECTION("stacks") {
    StackId stack = empty_stack;
    const FrameId same = tables.stacks.intern(frame("f"));
    for (std::size_t i = 0; i < LastSamples::most_stacks; ++i) stack = tables.stacks.intern({stack, same});
  }
  SECTION("threads") {
    for (int i = 0; i <= static_cast<int>(LastSamples::most_threads); ++i) (void)tables.threads.intern({i, "t", 1});
  }
  CHECK(last.tables_are_full());
  last.renew_tables(second);
  CHECK(!last.tables_are_full());
}

// As on a host where each second some programs begin and end, for days.
TEST_CASE("the tables of a recording without end stay small, and sleepers keep their stacks", "[unit]") {
  EventTables tables;
  LastSamples last(tables);
  constexpr int sleepers = 500, hours = 200'000;
  for (int i = 0; i < sleepers; ++i) {
    Sample asleep = sample_in(tables, "sleeper " + std::to_string(i), Sample::State::sleeping);
    last.complete(tables.threads.intern({i, "", i, "sleeper", 1, 0}), 0, asleep);
  }
  int renewals = 0;
  std::size_t most_stacks = 0, most_threads = 0;
  for (int i = 0; i < hours; ++i) {
    const std::int64_t now = i * second / 1000;
    const ThreadId thread = tables.threads.intern({i, "", 1000 + i, "short", static_cast<std::uint64_t>(i) + 2, 0});
    Sample ran = sample_in(tables, "function " + std::to_string(i), Sample::State::running);
    last.complete(thread, now, ran);
    if (i % 1000 == 0) {
      for (int each = 0; each < sleepers; ++each) {
        Sample again;
        again.again = true;
        again.state = Sample::State::sleeping;
        last.complete(*tables.threads.find({1, each, each, 0}), now, again);
        REQUIRE(again.loss == Loss::none);
        REQUIRE(tables.stacks.frames_of(again.stack).back().name == "sleeper " + std::to_string(each));
      }
    }
    most_stacks = std::max(most_stacks, tables.stacks.nodes().size());
    most_threads = std::max(most_threads, tables.threads.size());
    if (!last.tables_are_full()) continue;
    last.renew_tables(now);
    ++renewals;
  }
  CHECK(renewals > 5);
  CHECK(most_stacks <= LastSamples::most_stacks + 1);
  CHECK(most_threads <= LastSamples::most_threads + 1);
}

TEST_CASE("tables that sleepers fill have room for as many again", "[unit]") {
  EventTables tables;
  LastSamples last(tables);
  for (std::size_t i = 0; i < 3 * LastSamples::most_stacks; ++i)
    (void)sample_in(tables, std::to_string(i), Sample::State::running);
  CHECK(last.tables_are_full());
  CHECK_FALSE(LastSamples(tables).tables_are_full());
}

}  // namespace luaspy::last_samples_test
