#pragma once
// THE TICK. On each CPU where the target executes, luaspy has a thread with its own timer, a
// stopper. It finds out which of the target's threads it has just interrupted, stops that one and
// reads it. If the kernel logs switches for luaspy (attach/switch_log.h), no stop is needed: the
// thread has no CPU until the stopper sleeps.
//
// Why on that CPU: a stop, or a wake-up, from another CPU takes some µs to arrive. Until then the
// target keeps running, and its first return from the kernel notices the stop. So such a stop lands
// at the target's next system call, wherever the target was. A local timer interrupts it where it
// is.
//
//   CPU 0:  target ──────┤timer: stopper│──── target ──────┤stopper│───
//   CPU 1:  main thread: every few ms, by its own timer: evaluates what was read, counts it.  No thread wakes another.
//
// At a tick, a thread has either executed (a sample), slept, waited for a CPU or ended, or the tick
// is a loss.

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
  // `always_stop`: with ptrace, even if the log of a thread's switches would be sufficient. `kernel`: also records
  // where threads are in the kernel (attach/kernel_log.h).
  Stoppers(const TickGrid& grid, double max_stopped, bool idle, bool always_stop, bool kernel);
  // Ends all stoppers, which takes a second at most. Threads that did not stop in time have been
  // released when it returns.
  ~Stoppers();
  Stoppers(const Stoppers&) = delete;
  Stoppers& operator=(const Stoppers&) = delete;

  // ---- For the main thread, every few ms. Sets which threads exist now. Threads that are no
  // longer among them, and those of the session `but`, are not looked at any more when it returns.
  // It returns these, so that what was counted for them is not lost.
  std::vector<std::shared_ptr<Watch>> watch(const std::vector<std::unique_ptr<Session>>& sessions,
                                            const Session* but = nullptr);
  const std::vector<std::shared_ptr<Watch>>& watched() const { return *main_roster_; }
  // Hands over what was found and read up to `until`, in the order of ticks.
  void drain(system::Clock::time_point until, const std::function<void(Found&)>& take);
  // Interrupts waits for threads that do not stop.
  void watch_over();
  // Keeps the calling thread off the CPUs where the target executes, if it may use others.
  void keep_off();
  // Ends the ticks: nothing is found after that.
  void stop();

  std::int64_t ticks() const { return ticks_; }      // made so far
  std::int64_t skipped() const { return skipped_; }  // left out so far, because earlier stops were not paid for
  // Stops that no wait reported for a second: each of these threads was stopped until then. This
  // should not happen.
  std::int64_t unheard() const { return unheard_; }
  bool on_time() const;  // every stopper is a real-time thread

 private:
  friend class Stopper;
  using Roster = std::vector<std::shared_ptr<Watch>>;

  // ---- For the stoppers.
  std::shared_ptr<const Roster> roster() const { return std::atomic_load(&roster_); }
  bool begin_tick(std::int64_t number, system::Clock::time_point now);  // false: leave this tick out
  void add_stop(int tid, std::int64_t ns);
  // Ensures that there is a stopper on that CPU from the next tick on. False if luaspy may not use
  // the CPU.
  bool need(int cpu);
  bool is_usable(int cpu) const;
  bool retire(Stopper& stopper);  // false: it is the only one
  std::vector<Stopper*> all() const;
  void open_log(Watch& watch);
  void close_costly_logs();

  const TickGrid grid_;
  const bool idle_, kernel_;
  // Used by the main thread only.
  bool takes_logs_;
  int logs_ = 0;
  system::Clock::time_point logs_asked_ = system::Clock::now();
  std::vector<int> usable_;
  std::vector<std::unique_ptr<Stopper>> stoppers_;  // by index in usable_; created when needed
  mutable std::mutex stoppers_lock_;
  bool stopped_ = false;                                               // protected by stoppers_lock_
  std::unordered_map<const Thread*, std::shared_ptr<Watch>> watches_;  // of main_roster_
  std::shared_ptr<const Roster> main_roster_ = std::make_shared<Roster>();
  std::shared_ptr<const Roster> roster_ = main_roster_;
  std::mutex budget_lock_;
  StopBudget budget_;
  system::Clock::time_point start_;
  std::int64_t last_tick_ = 0, last_tick_at_ = 0;  // protected by budget_lock_: its number; ns since start_
  bool skips_ = true;                              // the last tick was left out
  std::atomic<std::int64_t> ticks_ = 0, skipped_ = 0, unheard_ = 0;
  std::vector<int> kept_off_;
};

}  // namespace luaspy
