#include "sampling_loop.h"

#include <utility>

#include "pacer.h"
#include "stop_budget.h"

namespace luaspy {
namespace {

using Clock = system::Clock;

std::int64_t to_ns(Clock::duration duration) { return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count(); }

class Loop {
 public:
  Loop(Family& family, const LoopOptions& options, SampleSink& sink, LoopCounts& counts)
      : family_(family), options_(options), sink_(sink), counts_(counts), pacer_(options.rate), budget_(options.max_stopped / 100) {}

  void run() {
    while (system::end_requested() == 0 && !sink_.has_enough()) {
      const std::optional<Pacer::Missed> missed = pacer_.wait();
      const Clock::time_point now = Clock::now();
      counts_.duration_ns = to_ns(now - start_);
      if (options_.duration && now - start_ >= std::chrono::duration<double>(*options_.duration)) break;
      if (missed) {
        sink_.add_loss(Loss::late, missed->late);
        sink_.add_loss(Loss::skipped, missed->skipped);
        tick(now);
      }
      sink_.look(counts_);
      if (target_ended(now)) {
        counts_.target_ended = true;
        break;
      }
      if (system::suspend_requested()) suspend();
      family_.update();
      for (const auto& session : family_.sessions()) session->sampler().settle();
    }
    counts_.duration_ns = to_ns(Clock::now() - start_);
    let_go();
  }

 private:
  // A thread that did not stop in time would stand still while the profile is written.
  void let_go() {
    constexpr std::chrono::seconds patience(1);
    const Clock::time_point deadline = Clock::now() + patience;
    for (bool pending = true; pending && Clock::now() < deadline;) {
      pending = false;
      for (const auto& session : family_.sessions()) {
        session->sampler().settle();
        pending |= session->target().has_pending();
      }
      if (pending) (void)system::sleep_until(Clock::now() + std::chrono::milliseconds(1));
    }
  }

  void tick(Clock::time_point now) {
    const Tick tick = {to_ns(now - start_), to_ns(now - std::exchange(last_, now))};
    ++counts_.ticks;
    for (const auto& session : family_.sessions()) {
      for (const auto& thread : session->target().process().threads()) look_at(*session, *thread, tick);
    }
    budget_.end_tick(to_ns(now - start_));
    pacer_.pause_until(start_ + std::chrono::nanoseconds(budget_.paid_at()));
  }

  void look_at(Session& session, Thread& thread, const Tick& tick) {
    std::optional<Sample> sample = session.sampler().sample(thread);
    if (!sample) {
      sink_.add_idle(session, thread, tick);
      return;
    }
    if (sample->stopped_ns != 0) {
      counts_.stops.add(sample->stopped_ns);
      budget_.add(thread.tid(), sample->stopped_ns);
    }
    thread_ended_ |= sample->loss == Loss::ended;
    sink_.add(session, thread, tick, *sample);
  }

  // Asking costs more than a look at a thread; a thread that has ended says it, too.
  bool target_ended(Clock::time_point now) {
    constexpr std::chrono::seconds ask_again(1);
    bool none_left = true;
    for (const auto& session : family_.sessions()) none_left &= session->target().process().threads().empty();
    if (!none_left && !thread_ended_ && now - asked_ <= ask_again) return false;
    thread_ended_ = false;
    asked_ = now;
    return family_.ended();
  }

  // The pause is nobody's time, and ticks that fall into it are none.
  void suspend() {
    sink_.before_suspend();
    system::suspend();
    sink_.after_suspend();
    pacer_ = Pacer(options_.rate);
    last_ = Clock::now();
  }

  Family& family_;
  const LoopOptions& options_;
  SampleSink& sink_;
  LoopCounts& counts_;
  Pacer pacer_;
  StopBudget budget_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_, asked_ = start_;
  bool thread_ended_ = false;
};

}  // namespace

void run_loop(Family& family, const LoopOptions& options, SampleSink& sink, LoopCounts& counts) { Loop(family, options, sink, counts).run(); }

}  // namespace luaspy
