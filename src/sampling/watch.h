#pragma once
// What stoppers know of each thread of the target from tick to tick, and what they hand over to the
// main thread.

#include <atomic>
#include <memory>
#include <mutex>

#include "attach/switch_log.h"
#include "sampling/session.h"
#include "system/calls.h"

namespace luaspy {

// Tries to get; who has it is not waited for by those that must not.
class Claim {
 public:
  bool try_take() { return !taken_.test_and_set(std::memory_order_acquire); }
  void give_back() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

// One thread of the target, from tick to tick.
struct Watch {
  Watch(Session& of, std::shared_ptr<Thread> watched, system::Clock::time_point now)
      : session(of),
        thread(std::move(watched)),
        at(now),
        cpu(thread->cpu()),
        cpu_time(thread->cpu_time().value_or(Thread::CpuTime{})) {}

  Session& session;
  const std::shared_ptr<Thread> thread;
  std::unique_ptr<SwitchLog> switches;  // null: the kernel does not let luaspy have it
  Claim claim;                          // who has it may look at the thread, and change what follows
  std::int64_t tick = -1;  // the last one that has been accounted for; -1: none, its ticks begin with the next one
  system::Clock::time_point at;     // when that was
  std::int64_t skipped_seen = 0;    // Stoppers::skipped() then
  std::atomic<bool> slept = false;  // at that tick
  std::atomic<bool> gone = false;   // its session is being dropped
  bool moved = false;               // it went to another CPU since
  std::atomic<int> asked_by = -1;  // the CPU whose stopper has asked it to stop, and it has not yet: that one alone may
                                   // look at it
  Thread::Schedule schedule;       // as it was then, or at the last tick before it that asked
  system::Clock::time_point schedule_at;           // when that was
  std::atomic<int> cpu;                            // where it was seen last; the stopper there looks after it
  std::atomic<std::int64_t> idle = 0, waited = 0;  // ticks that it slept, or waited for a CPU, not counted by the main
                                                   // thread yet
  std::atomic<std::int64_t> late = 0, elsewhere = 0, not_stopped = 0;  // the same: ticks that came to nothing

  // The main thread's.
  Thread::CpuTime cpu_time;  // as it was asked last
  std::uint64_t noted = 0;   // SwitchLog::noted() then

  // Of the last look that was finished; stoppers use it for the next one.
  std::mutex prediction_lock;
  std::shared_ptr<const StackReader::Prediction> prediction = std::make_shared<StackReader::Prediction>();
};

// What a stopper has found of a thread at a tick, if it is more than a count.
struct Found {
  explicit Found(const Memory& target) : look(target) {}
  std::shared_ptr<Watch> watch;
  std::int64_t number = 0;  // of the tick
  system::Clock::time_point at;
  std::int64_t passed_ns = 0;  // since the thread's last tick
  enum class Kind { look, asleep_again, waiting, loss } kind = Kind::loss;
  Loss loss = Loss::none;
  std::int64_t stopped_ns = 0;
  bool remote = false;  // stopped from another CPU
  Sampler::Look look;
};

}  // namespace luaspy
