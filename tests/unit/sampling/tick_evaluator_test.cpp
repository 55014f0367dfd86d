#include "sampling/tick_evaluator.h"

#include <catch2/catch.hpp>

#include "support/fake_target.h"

namespace luaspy::tick_evaluator_test {
namespace {

using fake::at_ms;
using fake::FakeProcess;
using fake::FakeThread;
using fake::ns_a_ms;
using Tracked = std::shared_ptr<TrackedThread>;

// Writes down what it is given.
class FakeSink : public SampleSink {
 public:
  struct Added {
    ThreadId thread;
    Tick tick;
    Sample sample;
  };
  void add(ThreadId thread, const Tick& tick, const Sample& sample) override {
    added.push_back({thread, tick, sample});
  }
  void add_idle(ThreadId, std::int64_t count) override { idle += count; }
  void add_waiting(ThreadId, std::int64_t count) override { waiting += count; }
  void add_loss(Loss loss, std::int64_t count) override { losses[static_cast<std::size_t>(loss)] += count; }
  std::int64_t lost(Loss loss) const { return losses[static_cast<std::size_t>(loss)]; }

  std::vector<Added> added;
  std::int64_t idle = 0, waiting = 0;
  LossCounts losses{};
};

struct Recorded {
  Tracked add(pid_t number = 1, std::int64_t began = 1) {
    return std::make_shared<TrackedThread>(process, std::make_shared<FakeThread>(number, began), at_ms(0));
  }
  Sample running_in(const char* function) {
    Sample sample;
    sample.stack = tables.stacks.intern(
        {empty_stack, tables.stacks.intern(Frame{Frame::Kind::lua, function, "a.lua", 1, 0})});
    return sample;
  }
  // The thread's result at a tick.
  void find(const Tracked& thread, double time, TickResult::Kind kind, Loss loss = Loss::none) {
    TickResult found(process.memory());
    found.thread = thread;
    found.at = at_ms(time);
    found.passed_ns = 10 * ns_a_ms;
    found.kind = kind;
    found.loss = loss;
    found.cpu = 3;
    if (kind == TickResult::Kind::look) found.look.state.kind = ThreadState::Kind::running;
    evaluator.evaluate(found);
  }
  std::string innermost(std::size_t i) const { return tables.stacks.frames_of(sink.added[i].sample.stack).back().name; }

  EventTables tables;
  FakeProcess process{tables};
  FakeSink sink;
  LoopCounts counts;
  TickEvaluator evaluator{tables, sink, counts, at_ms(0), std::chrono::milliseconds(10)};
};

using Kind = TickResult::Kind;

}  // namespace

TEST_CASE("a look becomes a sample of its thread at its tick", "[unit]") {
  Recorded recorded;
  const Tracked thread = recorded.add();
  recorded.process.next_sample = recorded.running_in("work");
  recorded.find(thread, 20, Kind::look);
  REQUIRE(recorded.sink.added.size() == 1);
  const FakeSink::Added& added = recorded.sink.added[0];
  CHECK(added.tick.at_ns == 20 * ns_a_ms);
  CHECK(added.tick.weight == 10 * ns_a_ms);
  CHECK(added.sample.cpu == 3);
  CHECK(recorded.innermost(0) == "work");
  CHECK(recorded.counts.sampled_cpu_ns == 10 * ns_a_ms);
}

TEST_CASE("ticks that were only counted are handed on once", "[unit]") {
  Recorded recorded;
  const Tracked thread = recorded.add();
  UnseenTicks& unseen = thread->unseen;
  unseen.idle = 1, unseen.waited = 2, unseen.late = 3, unseen.elsewhere = 4, unseen.not_stopped = 5, unseen.in_vain = 6;
  thread->looks.record(Loss::unreadable);
  recorded.evaluator.count(*thread);
  recorded.evaluator.count(*thread);
  const FakeSink& sink = recorded.sink;
  CHECK(sink.idle == 1);
  CHECK(sink.waiting == 2);
  CHECK(sink.lost(Loss::late) == 3);
  CHECK(sink.lost(Loss::elsewhere) == 4);
  CHECK(sink.lost(Loss::not_stopped) == 5);
  CHECK(sink.lost(Loss::unreadable) == 6);  // the reason of the looks that were left out
  CHECK(sink.added.empty());
}

TEST_CASE("a thread that ended in the middle of a look is a loss, and threads are listed again", "[unit]") {
  Recorded recorded;
  const Tracked thread = recorded.add();
  recorded.find(thread, 10, Kind::loss, Loss::ended);
  REQUIRE(recorded.sink.added.size() == 1);
  CHECK(recorded.sink.added[0].sample.loss == Loss::ended);
  CHECK(recorded.process.forgotten == 1);
  CHECK(recorded.evaluator.thread_ended());
  CHECK_FALSE(recorded.evaluator.thread_ended());
  CHECK(recorded.counts.sampled_cpu_ns == 0);
}

TEST_CASE("a stop that only counts for its time is no sample and no loss", "[unit]") {
  Recorded recorded;
  recorded.find(recorded.add(), 10, Kind::loss, Loss::none);
  CHECK(recorded.sink.added.empty());
}

TEST_CASE("a thread that has the number of an ended one is another thread", "[unit]") {
  Recorded recorded;
  const Tracked first = recorded.add(7, 100), second = recorded.add(7, 200);
  recorded.process.next_sample = recorded.running_in("work");
  recorded.find(first, 10, Kind::look);
  recorded.find(second, 20, Kind::look);
  recorded.find(first, 30, Kind::look);
  REQUIRE(recorded.sink.added.size() == 3);
  CHECK(recorded.sink.added[0].thread != recorded.sink.added[1].thread);
  CHECK(recorded.sink.added[0].thread == recorded.sink.added[2].thread);
}

TEST_CASE("after an exec, a thread of the same number and beginning is another program's", "[unit]") {
  Recorded recorded;
  const Tracked before = recorded.add();
  recorded.process.next_sample = recorded.running_in("work");
  recorded.find(before, 10, Kind::look);
  recorded.process.exec();
  const Tracked after = recorded.add();
  recorded.find(after, 20, Kind::look);
  REQUIRE(recorded.sink.added.size() == 2);
  CHECK(recorded.sink.added[0].thread != recorded.sink.added[1].thread);
}

TEST_CASE("a thread that sleeps on is where it was; one that was never read is left out", "[unit]") {
  Recorded recorded;
  const Tracked read = recorded.add(1), unread = recorded.add(2);
  recorded.process.next_sample = recorded.running_in("wait");
  recorded.process.next_sample.state = Sample::State::sleeping;
  recorded.find(read, 10, Kind::look);
  recorded.find(read, 20, Kind::asleep_again);
  recorded.find(unread, 20, Kind::asleep_again);
  REQUIRE(recorded.sink.added.size() == 3);
  CHECK(recorded.sink.added[1].sample.stack == recorded.sink.added[0].sample.stack);
  CHECK(recorded.sink.added[1].sample.state == Sample::State::sleeping);
  CHECK_FALSE(recorded.sink.added[1].sample.again);
  CHECK(recorded.sink.added[2].sample.loss == Loss::left_out);
  CHECK(recorded.counts.sampled_cpu_ns == 0);
}

TEST_CASE("a thread that waits for a CPU is no CPU time", "[unit]") {
  Recorded recorded;
  recorded.find(recorded.add(), 10, Kind::waiting);
  REQUIRE(recorded.sink.added.size() == 1);
  CHECK(recorded.sink.added[0].sample.state == Sample::State::waiting);
  CHECK(recorded.innermost(0) == "[waiting for a CPU]");
  CHECK(recorded.counts.sampled_cpu_ns == 0);
}

TEST_CASE("after a pause, a thread is read as before it; one of another program is not", "[unit]") {
  Recorded recorded;
  const Tracked before = recorded.add(1);
  const auto learned = std::make_shared<const StackReader::Prediction>();
  before->predicted.set(learned);
  for (const bool execs : {false, true}) {
    recorded.evaluator.keep_predictions({before});
    if (execs) recorded.process.exec();
    const Tracked after = recorded.add(1), other = recorded.add(2);
    recorded.evaluator.give_predictions({after, other});
    CHECK((after->predicted.get() == learned) == !execs);
    CHECK(other->predicted.get() != learned);
  }
}

}  // namespace luaspy::tick_evaluator_test
