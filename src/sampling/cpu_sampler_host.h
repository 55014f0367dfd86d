#pragma once
// What a CPU sampler needs to know of a recording, and of the other CPU samplers. Tests have one of their own.

#include <cstdint>
#include <functional>
#include <memory>

#include "attach/kernel_log.h"
#include "sampling/tick_grid.h"
#include "sampling/tracked_thread.h"
#include "system/calls.h"

namespace luaspy {

class CpuSampler;

struct CpuSamplerOptions {
  TickGrid grid;
  bool idle = false;                           // each tick of a thread that sleeps or waits is a result
  std::shared_ptr<const KernelLogs> kernel{};  // records where threads are in the kernel; or nullptr
};

// All functions may be called by any CPU sampler's thread.
class CpuSamplerHost {
 public:
  virtual ~CpuSamplerHost() = default;

  virtual const CpuSamplerOptions& options() const = 0;
  // Calls `visit` for each thread that is sampled now.
  virtual void visit_threads(const std::function<void(const std::shared_ptr<TrackedThread>&)>& visit) const = 0;
  // False: this tick is left out, because earlier stops were not paid for.
  virtual bool begin_tick(std::int64_t number, system::Clock::time_point now) = 0;
  virtual std::int64_t skipped() const = 0;  // ticks left out so far
  // A thread was stopped for so long.
  virtual void add_stop(int tid, std::int64_t ns) = 0;
  // So long a CPU sampler has worked in a tick.
  virtual void add_work(int cpu, std::int64_t ns) = 0;
  // No wait has reported a stop for a second.
  virtual void count_unreported() = 0;
  // A thread is looked at from another CPU.
  virtual void count_from_elsewhere() = 0;

  // Ensures that there is a CPU sampler on that CPU from the next tick on. False if there cannot be one.
  virtual bool need(int cpu) = 0;
  virtual bool need_other(int than) = 0;
  // Whether a CPU sampler would not run while that thread does.
  virtual bool is_preceded_by(const TrackedThread& thread) const = 0;
  // The CPU sampler of another CPU than that is responsible for the thread from now on. False: there is none.
  virtual bool assign_elsewhere(TrackedThread& thread, int cpu) = 0;
  // False: it is the only CPU sampler, and has to stay. Else its threads are another one's now.
  virtual bool retire(CpuSampler& sampler) = 0;
  // The CPU sampler has starved on its CPU: nobody looks from there for some time.
  virtual void leave_alone(int cpu) = 0;

  // The real-time priority of CPU samplers, 0: they are ordinary threads; and whether that is above what they were
  // given, because a thread of the target would precede them.
  virtual int priority() const = 0;
  virtual bool stands_above() const = 0;
};

}  // namespace luaspy
