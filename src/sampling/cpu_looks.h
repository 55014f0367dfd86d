#pragma once
// The looks of one CPU sampler, by its thread: at threads that it has asked to stop, as soon as they do; without a
// stop; and at threads that sleep.

#include <memory>
#include <vector>

#include "attach/kernel_log.h"
#include "sampling/cpu_tick.h"
#include "sampling/result_ring.h"
#include "system/calls.h"

namespace luaspy {

class CpuLooks : public CpuTick::Looks {
 public:
  CpuLooks(CpuSamplerHost& host, ResultRing& results, int cpu) : host_(host), results_(results), cpu_(cpu) {}

  // Before the first look. `own`: the calling thread. `kernel`: of the CPU, if the calling thread stays there; nullptr:
  // not asked for. Both must live as long as there are looks.
  void begin(const Thread& own, const KernelLog* kernel) { own_ = &own, kernel_ = kernel; }

  void stop(const std::shared_ptr<TrackedThread>& thread, const Thread::Schedule& before, const TickMoment& moment,
            bool remote) override;
  void read_without_stop(const std::shared_ptr<TrackedThread>& thread, const SwitchLog::Switch& lost,
                         const TickMoment& moment) override;
  void read_asleep(const std::shared_ptr<TrackedThread>& thread, const Thread::Schedule& now,
                   const TickMoment& moment) override;
  bool adopt_unreported(TrackedThread& thread, const TickMoment& moment) override;
  std::optional<std::int64_t> counted_at() override { return own_->counted_at(); }

  // Whether threads were asked to stop; and whether a wait may report one of these, or of those that were given up.
  bool asks() const { return !asked_.empty(); }
  bool awaits() const { return asks() || tracer_.has_pending(); }
  // A wait has reported that thread: it is looked at.
  void handle(pid_t tid, const system::WaitStatus& status);
  // A wait has reported that nothing is traced: the threads that were asked are gone.
  void forget_all();
  // No look comes any more. Threads that do not stop in time are released when the calling thread ends.
  void give_up();

  // By any thread: Tracer::waits_since().
  std::int64_t waits_since() const { return tracer_.waits_since(); }

 private:
  // A thread that executed at a tick and was asked to stop. It stops when it gets its CPU again,
  // which may be in use by another thread until then.
  struct Asked {
    std::shared_ptr<TrackedThread> thread;
    std::unique_ptr<Stop> stop;
    Thread::Schedule before;
    std::int64_t passed_ns;
    TickMoment moment;
    bool remote;
    KernelChain kernel;  // where it was at that tick
  };

  bool traces(const SampledProcess& process) const;
  TickResult* open(const std::shared_ptr<TrackedThread>& thread);
  void look(Asked asked);
  void read(const Asked& asked);
  void count_stop(const Asked& asked, TickResult& found);
  void read_kernel_chain(pid_t tid, const TickMoment& moment, KernelChain& chain) const;

  CpuSamplerHost& host_;
  ResultRing& results_;
  const int cpu_;
  const Thread* own_ = nullptr;
  const KernelLog* kernel_ = nullptr;
  Tracer tracer_{std::chrono::milliseconds(50)};
  std::vector<Asked> asked_;
};

}  // namespace luaspy
