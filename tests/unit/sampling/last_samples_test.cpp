#include "sampling/last_samples.h"

#include <catch2/catch.hpp>

namespace luaspy {
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

}  // namespace luaspy
