#pragma once
// THE TICK. A thread of luaspy's on each CPU where the target executes, with its own timer: it finds out which of the target's threads it has just
// interrupted, stops that one and reads it.
//
// Why there: a stop, or a waking, that comes from another CPU takes some µs to arrive. Until then the target runs on, and the first return from the kernel
// sees it: such a stop lands on the target's next system call, wherever the target was. A local timer interrupts it where it is.
//
//   CPU 0:  target ──────┤timer: stopper│──── target ──────┤stopper│───
//   CPU 1:  main thread: every few ms, by its own timer: finishes what was read, counts it.  Nobody wakes anybody.
//
// What a thread does at a tick is one of: executed (a sample), slept, waited for a CPU, ended, or a loss.

#include <pthread.h>

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "session.h"
#include "stop_budget.h"
#include "tick_grid.h"

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
      : session(of), thread(std::move(watched)), at(now), cpu(thread->cpu()), cpu_time(thread->cpu_time().value_or(Thread::CpuTime{})) {}

  Session& session;
  const std::shared_ptr<Thread> thread;
  Claim claim;                              // who has it may look at the thread, and change what follows
  std::int64_t tick = -1;                   // the last one that has been accounted for; -1: none, its ticks begin with the next one
  system::Clock::time_point at;             // when that was
  std::int64_t skipped_seen = 0;            // Stoppers::skipped() then
  std::atomic<bool> slept = false;          // at that tick
  std::atomic<bool> gone = false;           // its session is being dropped
  bool moved = false;                       // it went to another CPU since
  std::atomic<int> asked_by = -1;           // the CPU whose stopper has asked it to stop, and it has not yet: that one alone may look at it
  Thread::Schedule schedule;                // as it was then
  std::atomic<int> cpu;                     // where it was seen last; the stopper there looks after it
  std::atomic<std::int64_t> idle = 0, waited = 0;   // ticks that it slept, or waited for a CPU, not counted by the main thread yet
  std::atomic<std::int64_t> late = 0, elsewhere = 0, not_stopped = 0;   // the same: ticks that came to nothing

  Thread::CpuTime cpu_time;                 // the main thread's: as it was asked last

  // Of the last look that was finished; stoppers use it for the next one.
  std::mutex prediction_lock;
  std::shared_ptr<const StackReader::Prediction> prediction = std::make_shared<StackReader::Prediction>();
};

// What a stopper has found of a thread at a tick, if it is more than a count.
struct Found {
  explicit Found(const Memory& target) : look(target) {}
  std::shared_ptr<Watch> watch;
  std::int64_t number = 0;                  // of the tick
  system::Clock::time_point at;
  std::int64_t weight_ns = 0;               // since the thread's last tick
  enum class Kind { look, asleep_again, waiting, loss } kind = Kind::loss;
  Loss loss = Loss::none;
  std::int64_t stopped_ns = 0;
  bool remote = false;                      // stopped from another CPU
  Sampler::Look look;
};

class Stoppers {
 public:
  Stoppers(const TickGrid& grid, double max_stopped, bool idle);
  // Ends all of them. What did not stop in time is let go by then, after a second at most.
  ~Stoppers();
  Stoppers(const Stoppers&) = delete;
  Stoppers& operator=(const Stoppers&) = delete;

  // ---- For the main thread, every few ms.
  // Which threads there are now. Those of sessions that are left out are no longer looked at when it returns: these are returned, for what was counted of them.
  std::vector<std::shared_ptr<Watch>> watch(const std::vector<std::unique_ptr<Session>>& sessions, const Session* but = nullptr);
  const std::vector<std::shared_ptr<Watch>>& watched() const { return *main_roster_; }
  // Hands over what was found and read, in the order of ticks, but for what is younger than `until`.
  void drain(system::Clock::time_point until, const std::function<void(Found&)>& take);
  // Ends waits for threads that do not stop.
  void watch_over();
  // Takes the CPUs where the target executes off those that the calling thread may use, if there are others.
  void keep_off();
  // Ends the ticks: nothing more is found.
  void stop();

  std::int64_t ticks() const { return ticks_; }       // made so far
  std::int64_t skipped() const { return skipped_; }   // left out so far, as stops are not paid for
  bool on_time() const;                               // every stopper is a real-time thread

 private:
  class Stopper;
  using Roster = std::vector<std::shared_ptr<Watch>>;

  // Of the stoppers.
  std::shared_ptr<const Roster> roster() const { return std::atomic_load(&roster_); }
  bool begin_tick(std::int64_t number, system::Clock::time_point now);   // false: it is to be left out
  void add_stop(int tid, std::int64_t ns);
  // There is a stopper on that CPU from the next tick on. False if luaspy may not use it.
  bool need(int cpu);
  bool is_usable(int cpu) const;
  bool retire(Stopper& stopper);   // false: it is the only one
  std::vector<Stopper*> all() const;

  const TickGrid grid_;
  const bool idle_;
  std::vector<int> usable_;
  std::vector<std::unique_ptr<Stopper>> stoppers_;   // by place in usable_; made when needed
  mutable std::mutex stoppers_lock_;
  bool stopped_ = false;                             // stoppers_lock_'s
  std::unordered_map<const Thread*, std::shared_ptr<Watch>> watches_;   // main_roster_'s
  std::shared_ptr<const Roster> main_roster_ = std::make_shared<Roster>();
  std::shared_ptr<const Roster> roster_ = main_roster_;
  std::mutex budget_lock_;
  StopBudget budget_;
  system::Clock::time_point start_;
  std::int64_t last_tick_ = 0, last_tick_at_ = 0;   // budget_lock_'s: its number; ns since start_
  bool skips_ = true;                               // the last tick was left out
  std::atomic<std::int64_t> ticks_ = 0, skipped_ = 0;
  std::vector<int> kept_off_;
};

}  // namespace luaspy
