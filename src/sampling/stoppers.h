#pragma once
// THE TICK. A thread of luaspy's on each CPU where the target executes, with its own timer: it
// finds out which of the target's threads it has just interrupted, stops that one and reads it.
// Where the kernel logs switches for luaspy (attach/switch_log.h) no stop is needed: the thread has
// no CPU until the stopper sleeps.
//
// Why there: a stop, or a waking, that comes from another CPU takes some µs to arrive. Until then
// the target runs on, and the first return from the kernel sees it: such a stop lands on the
// target's next system call, wherever the target was. A local timer interrupts it where it is.
//
//   CPU 0:  target ──────┤timer: stopper│──── target ──────┤stopper│───
//   CPU 1:  main thread: every few ms, by its own timer: finishes what was read, counts it.  Nobody wakes anybody.
//
// What a thread does at a tick is one of: executed (a sample), slept, waited for a CPU, ended, or a
// loss.

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sampling/stop_budget.h"
#include "sampling/tick_grid.h"
#include "sampling/watch.h"
#include "system/calls.h"

namespace luaspy {

class Stopper;

class Stoppers {
 public:
  // `always_stop`: by ptrace, even where the log of a thread's switches would do.
  Stoppers(const TickGrid& grid, double max_stopped, bool idle, bool always_stop);
  // Ends all of them. What did not stop in time is let go by then, after a second at most.
  ~Stoppers();
  Stoppers(const Stoppers&) = delete;
  Stoppers& operator=(const Stoppers&) = delete;

  // ---- For the main thread, every few ms. Which threads there are now. Those of sessions that are
  // left out are no longer looked at when it returns: these are returned, for what was counted of
  // them.
  std::vector<std::shared_ptr<Watch>> watch(const std::vector<std::unique_ptr<Session>>& sessions,
                                            const Session* but = nullptr);
  const std::vector<std::shared_ptr<Watch>>& watched() const { return *main_roster_; }
  // Hands over what was found and read, in the order of ticks, but for what is younger than
  // `until`.
  void drain(system::Clock::time_point until, const std::function<void(Found&)>& take);
  // Ends waits for threads that do not stop.
  void watch_over();
  // Takes the CPUs where the target executes off those that the calling thread may use, if there
  // are others.
  void keep_off();
  // Ends the ticks: nothing more is found.
  void stop();

  std::int64_t ticks() const { return ticks_; }      // made so far
  std::int64_t skipped() const { return skipped_; }  // left out so far, as stops are not paid for
  // Stops that no wait has told of for a second: each thread stood still until then. It should not
  // happen.
  std::int64_t unheard() const { return unheard_; }
  bool on_time() const;  // every stopper is a real-time thread

 private:
  friend class Stopper;
  using Roster = std::vector<std::shared_ptr<Watch>>;

  // Of the stoppers.
  std::shared_ptr<const Roster> roster() const { return std::atomic_load(&roster_); }
  bool begin_tick(std::int64_t number, system::Clock::time_point now);  // false: it is to be left out
  void add_stop(int tid, std::int64_t ns);
  // There is a stopper on that CPU from the next tick on. False if luaspy may not use it.
  bool need(int cpu);
  bool is_usable(int cpu) const;
  bool retire(Stopper& stopper);  // false: it is the only one
  std::vector<Stopper*> all() const;
  void open_log(Watch& watch);
  void close_costly_logs();

  const TickGrid grid_;
  const bool idle_;
  // The main thread's.
  bool takes_logs_;
  int logs_ = 0;
  system::Clock::time_point logs_asked_ = system::Clock::now();
  std::vector<int> usable_;
  std::vector<std::unique_ptr<Stopper>> stoppers_;  // by place in usable_; made when needed
  mutable std::mutex stoppers_lock_;
  bool stopped_ = false;                                               // stoppers_lock_'s
  std::unordered_map<const Thread*, std::shared_ptr<Watch>> watches_;  // main_roster_'s
  std::shared_ptr<const Roster> main_roster_ = std::make_shared<Roster>();
  std::shared_ptr<const Roster> roster_ = main_roster_;
  std::mutex budget_lock_;
  StopBudget budget_;
  system::Clock::time_point start_;
  std::int64_t last_tick_ = 0, last_tick_at_ = 0;  // budget_lock_'s: its number; ns since start_
  bool skips_ = true;                              // the last tick was left out
  std::atomic<std::int64_t> ticks_ = 0, skipped_ = 0, unheard_ = 0;
  std::vector<int> kept_off_;
};

}  // namespace luaspy
