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

#include "sampling/cpu_sampler_host.h"
#include "sampling/precedence.h"
#include "sampling/result_ring.h"
#include "sampling/tick_gate.h"
#include "sampling/tick_grid.h"
#include "sampling/tracked_thread.h"
#include "sampling/watchdog.h"
#include "system/calls.h"

namespace luaspy {

class CpuSamplers : private CpuSamplerHost {
 public:
  // `max_stopped`: % of the time. `always_stop`: with ptrace, even if the log of a thread's switches would be
  // sufficient. `watchdog`: has a ward for each CPU that luaspy may use, after the main thread's.
  CpuSamplers(CpuSamplerOptions options, double max_stopped, bool always_stop, Watchdog& watchdog);
  // Ends all CPU samplers, which takes a second at most. Threads that did not stop in time have been
  // released when it returns.
  ~CpuSamplers() override;
  CpuSamplers(const CpuSamplers&) = delete;
  CpuSamplers& operator=(const CpuSamplers&) = delete;

  // ---- For the main thread, every few ms. Sets which threads exist now. Threads that are no
  // longer among them, and those of processes that are no longer, are not looked at any more when it
  // returns. It returns these, so that what was counted for them is not lost.
  std::vector<std::shared_ptr<TrackedThread>> track(const std::vector<SampledProcess*>& processes);
  const std::vector<std::shared_ptr<TrackedThread>>& tracked() const { return *main_roster_; }
  // Hands over what was found and read up to `until`, in the order of ticks.
  void drain(system::Clock::time_point until, const std::function<void(TickResult&)>& consume);
  // Interrupts waits for threads that do not stop.
  void interrupt_long_waits();
  // Keeps the calling thread off the CPUs where the target executes, if it may use others.
  void keep_off();
  // Ends the ticks: nothing is found after that.
  void stop();

  std::int64_t ticks() const { return gate_.made(); }  // made so far
  // Left out so far, because earlier stops were not paid for.
  std::int64_t skipped() const override { return gate_.skipped(); }
  // Stops that no wait reported for a second: each of these threads was stopped until then. This
  // should not happen.
  std::int64_t unheard() const { return unheard_; }
  // What became of threads that precede luaspy.
  Precedence precedence() const;

 private:
  using Roster = std::vector<std::shared_ptr<TrackedThread>>;

  // ---- For the samplers.
  const CpuSamplerOptions& options() const override { return options_; }
  void visit_threads(const std::function<void(const std::shared_ptr<TrackedThread>&)>& visit) const override;
  bool begin_tick(std::int64_t number, system::Clock::time_point now) override { return gate_.begin(number, now); }
  void add_stop(int tid, std::int64_t ns) override { gate_.add_stop(tid, ns); }
  void add_work(int cpu, std::int64_t ns) override;
  void count_unreported() override { ++unheard_; }
  void count_from_elsewhere() override { from_elsewhere_ = true; }
  bool need(int cpu) override;
  bool need_other(int than) override;
  bool is_preceded_by(const TrackedThread& thread) const override {
    const Urgency urgency = thread.urgency;
    return !urgency.is_ordinary() && (urgency >= Urgency::real_time(priority_) || !may_step_above(thread));
  }
  bool assign_elsewhere(TrackedThread& thread, int cpu) override;
  bool retire(CpuSampler& sampler) override;
  void leave_alone(int cpu) override;
  int priority() const override { return priority_; }
  bool stands_above() const override { return priority_ > own_priority_; }

  bool is_usable(int cpu) const;
  bool is_left_alone(std::size_t index) const;
  // A thread that may use several CPUs would have to change its own at each look. If luaspy has one CPU only,
  // it does that once: then luaspy looks at it from there.
  bool may_step_above(const TrackedThread& thread) const { return thread.held || usable_.size() < 2; }
  // Finds a CPU sampler that can look at the thread: on the thread's CPU, or on another one if it would not run
  // there.
  void assign(TrackedThread& thread);
  void ask_urgency(const Roster& roster, bool at_once);
  void step_to(int priority);
  std::vector<CpuSampler*> all() const;
  void open_log(TrackedThread& thread);
  void wait_until_unused(TrackedThread& thread);
  void choose_logs();

  const CpuSamplerOptions options_;
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
  bool stopped_ = false;                                                     // protected by samplers_lock_
  std::unordered_map<const Thread*, std::shared_ptr<TrackedThread>> known_;  // of main_roster_
  std::shared_ptr<const Roster> main_roster_ = std::make_shared<Roster>();
  std::shared_ptr<const Roster> roster_ = main_roster_;
  TickGate gate_;
  std::atomic<std::int64_t> unheard_ = 0;
  std::vector<int> kept_off_;
};

}  // namespace luaspy
