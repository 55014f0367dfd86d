#pragma once
// THE TICK, as one CPU sampler decides it: which of the target's threads executed on its CPU when the tick was due. All
// others slept, waited for a CPU, or are looked at elsewhere. What threads do, the looks at them, and what other CPUs
// have to do with it is behind interfaces, and what time it is comes with the tick: tests play it without a process.

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sampling/cpu_sampler_host.h"
#include "sampling/result_ring.h"

namespace luaspy {

class CpuTick {
 public:
  // The looks at threads that the tick has chosen, and accounted for.
  class Looks {
   public:
    virtual ~Looks() = default;
    // It executed, with that schedule at the tick. The look comes when it stops. `remote`: on another CPU.
    virtual void stop(const std::shared_ptr<TrackedThread>& thread, const Thread::Schedule& before,
                      const TickMoment& moment, bool remote) = 0;
    // It has no CPU until the calling thread sleeps: `lost` is the last of its switches.
    virtual void read_without_stop(const std::shared_ptr<TrackedThread>& thread, const SwitchLog::Switch& lost,
                                   const TickMoment& moment) = 0;
    // It is not ready to run. Accounts for the tick itself: whether it slept then is seen by the look.
    virtual void read_asleep(const std::shared_ptr<TrackedThread>& thread, const Thread::Schedule& now,
                             const TickMoment& moment) = 0;
    // It was asked to stop at an earlier tick. If its stop went unheard for a second, it is looked at now: true.
    virtual bool adopt_unreported(TrackedThread& thread, const TickMoment& moment) = 0;
    // When the time of the calling thread on its CPU was counted last, as Thread::counted_at().
    virtual std::optional<std::int64_t> counted_at() = 0;
  };

  CpuTick(CpuSamplerHost& host, Looks& looks, ResultRing& results, int cpu)
      : host_(host), looks_(looks), results_(results), cpu_(cpu) {}

  // `in_time`: the CPU sampler did not have to wait for its CPU. `placed`: it runs on it, as it should.
  void run(const TickMoment& moment, bool in_time, bool placed);
  // Whether a thread executed here, or stays here, since this was asked last.
  bool was_needed() { return needed_.exchange(false); }
  void keep() { needed_ = true; }

 private:
  using Tracked = std::shared_ptr<TrackedThread>;
  struct Candidate {
    Tracked thread;
    Thread::Schedule now;
    int cpu;      // where it is
    bool remote;  // the CPU sampler is on another one
    bool executes = false;
  };
  // A thread whose CPU this CPU sampler has taken, according to the log of its switches.
  struct Met {
    Tracked thread;  // null: there is none
    SwitchLog::Switch lost;
  };

  void consider(const Tracked& thread);
  bool consider_by_log(const Tracked& thread);
  void consider_place(const Tracked& thread, const Thread::Schedule& now);
  void consider_preceding(const Tracked& thread, const Thread::Schedule& now, const Thread::Place& place);
  void choose_executing();
  void look_at_candidates(bool in_time);
  void look_at_met(bool in_time);
  bool is_asked(TrackedThread& thread);
  bool executes(const TrackedThread& thread, const Thread::Schedule& now, bool alone);
  bool looks_in_vain(TrackedThread& thread) const;
  void account(TrackedThread& thread, const Thread::Schedule* now, bool slept) const;
  void lose_late(TrackedThread& thread, const Thread::Schedule* now) const;
  void wait(const Tracked& thread, const Thread::Schedule* now);

  CpuSamplerHost& host_;
  Looks& looks_;
  ResultRing& results_;
  const int cpu_;
  TickMoment moment_;
  bool placed_ = false;
  std::atomic<bool> needed_ = false;
  std::vector<Candidate> candidates_;
  std::map<int, std::pair<Candidate*, std::int64_t>> busiest_;  // the remote one of each CPU; its time on it, ns
  Met met_;
  std::optional<std::int64_t> clock_offset_;  // system::Clock minus the scheduler's clock, ns
  system::Clock::time_point offset_asked_;
};

}  // namespace luaspy
