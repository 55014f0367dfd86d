#pragma once
// THE TICK. On each CPU where the target executes, luaspy has a thread with its own timer, a
// CPU sampler. It finds out which of the target's threads it has just interrupted, stops that one and
// reads it. If the kernel logs switches for luaspy (attach/switch_log.h), no stop is needed: the
// thread has no CPU until the CPU sampler sleeps.
//
// Why on that CPU: a stop, or a wake-up, from another CPU takes some µs to arrive. Until then the
// target keeps running, and its first return from the kernel notices the stop. So such a stop lands
// at the target's next system call, wherever the target was. A local timer interrupts it where it
// is.
//
//   CPU 0:  target ──────┤timer: CPU sampler│──── target ──────┤CPU sampler│───
//   CPU 1:  main thread: every few ms, by its own timer: evaluates what was read, counts it.  No thread wakes another.
//
// WHO PRECEDES WHOM. A CPU sampler is a real-time thread of priority 1 where luaspy may have one. Where a
// thread of the target is one of a higher priority that stays on its CPU, all CPU samplers step above it as long as
// it is (the time that they then run is bounded like that of stops). What they may not step above, because nothing
// precedes it, luaspy has no right to, or the kernel would move it, is looked at from another CPU. So is what runs on a
// CPU on which a CPU sampler has starved (watchdog.h).
//
// At a tick, a thread has either executed (a sample), slept, waited for a CPU or ended, or the tick
// is a loss.

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "attach/kernel_log.h"
#include "sampling/precedence.h"
#include "sampling/stop_budget.h"
#include "sampling/tick_grid.h"
#include "sampling/tracked_thread.h"
#include "sampling/watchdog.h"
#include "system/calls.h"

namespace luaspy {

class CpuSampler;

class CpuSamplers {
 public:
  // `always_stop`: with ptrace, even if the log of a thread's switches would be sufficient. `kernel`: records
  // where threads are in the kernel; may be nullptr. `watchdog`: has a ward for each CPU that luaspy may use,
  // after the main thread's.
  CpuSamplers(const TickGrid& grid, double max_stopped, bool idle, bool always_stop,
              std::shared_ptr<const KernelLogs> kernel, Watchdog& watchdog);
  // Ends all CPU samplers, which takes a second at most. Threads that did not stop in time have been
  // released when it returns.
  ~CpuSamplers();
  CpuSamplers(const CpuSamplers&) = delete;
  CpuSamplers& operator=(const CpuSamplers&) = delete;

  // ---- For the main thread, every few ms. Sets which threads exist now. Threads that are no
  // longer among them, and those of the session `but`, are not looked at any more when it returns.
  // It returns these, so that what was counted for them is not lost.
  std::vector<std::shared_ptr<TrackedThread>> watch(const std::vector<std::unique_ptr<Session>>& sessions,
                                                    const Session* but = nullptr);
  const std::vector<std::shared_ptr<TrackedThread>>& watched() const { return *main_roster_; }
  // Hands over what was found and read up to `until`, in the order of ticks.
  void drain(system::Clock::time_point until, const std::function<void(TickResult&)>& take);
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
  // What became of threads that precede luaspy.
  Precedence precedence() const;

 private:
  friend class CpuSampler;
  using Roster = std::vector<std::shared_ptr<TrackedThread>>;

  // ---- For the samplers.
  // Calls `visit` for each thread that is watched now. The main thread may replace the list meanwhile, so it is held.
  template <class Visit>
  void visit_watches(const Visit& visit) const {
    const std::shared_ptr<const Roster> held = std::atomic_load(&roster_);
    for (const std::shared_ptr<TrackedThread>& watch : *held) visit(watch);
  }
  bool begin_tick(std::int64_t number, system::Clock::time_point now);  // false: leave this tick out
  void add_stop(int tid, std::int64_t ns);
  // Ensures that there is a CPU sampler on that CPU from the next tick on. False if luaspy may not use
  // the CPU.
  bool need(int cpu);
  bool is_usable(int cpu) const;
  bool retire(CpuSampler& sampler);  // false: it is the only one
  // The CPU sampler has starved on its CPU: nobody looks from there for some time.
  void leave_alone(int cpu);
  bool need_other(int than);  // need() of any other CPU
  bool is_left_alone(std::size_t index) const;
  // Whether a CPU sampler would not run while that thread does.
  bool is_preceded_by(const TrackedThread& watch) const {
    const Urgency urgency = watch.urgency;
    return !urgency.is_ordinary() && (urgency >= Urgency::real_time(priority_) || !may_step_above(watch));
  }
  // A thread that may use several CPUs would have to change its own at each look. If luaspy has one CPU only,
  // it does that once: then luaspy looks at it from there.
  bool may_step_above(const TrackedThread& watch) const { return watch.held || usable_.size() < 2; }
  // Finds a CPU sampler that can look at the thread: on the thread's CPU, or on another one if it would not run
  // there.
  void assign(TrackedThread& watch);
  bool assign_elsewhere(TrackedThread& watch, int cpu);  // false: there is no other CPU
  void settle_urgency(const Roster& roster, bool at_once);
  void step_to(int priority);
  void add_work(int cpu, std::int64_t ns);  // that a CPU sampler has done in a tick
  int priority() const { return priority_; }
  bool stands_above() const { return priority_ > own_priority_; }
  std::vector<CpuSampler*> all() const;
  void open_log(TrackedThread& watch);
  void choose_logs();

  const TickGrid grid_;
  const bool idle_;
  const std::shared_ptr<const KernelLogs> kernel_;  // or nullptr
  // Used by the main thread only.
  bool takes_logs_;
  int logs_ = 0;
  system::Clock::time_point logs_asked_ = system::Clock::now();
  const std::vector<int> usable_;
  std::vector<std::unique_ptr<CpuSampler>> samplers_;  // by index in usable_; created when needed
  Watchdog& watchdog_;
  // Of a CPU: until when it is left alone, ns of system::Clock, and for how long the last time.
  struct LeftAlone {
    std::atomic<std::int64_t> until_ns = 0;
    std::int64_t for_ns = 0;  // protected by samplers_lock_
  };
  std::vector<LeftAlone> left_alone_;  // by index in usable_
  int own_priority_ = 0;  // that CPU samplers have where no thread of the target precedes them; 0: ordinary threads
  std::atomic<int> priority_ = 0;  // that they have
  system::Clock::time_point urgency_asked_{}, all_asked_{};
  Precedence precedence_;  // without what follows
  std::atomic<std::int64_t> above_ns_ = 0;
  std::atomic<bool> left_cpu_ = false, from_elsewhere_ = false;
  mutable std::mutex samplers_lock_;
  bool stopped_ = false;                                                       // protected by samplers_lock_
  std::unordered_map<const Thread*, std::shared_ptr<TrackedThread>> watches_;  // of main_roster_
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
