#pragma once
// What a sampling loop finds, for whoever shows, counts or writes it. Threads and stacks have the numbers of
// ProcessTree::tables().

#include <cstdint>

#include "base/cpu_use.h"
#include "base/ids.h"
#include "base/sample.h"
#include "events/suspended.h"
#include "sampling/precedence.h"
#include "system/calls.h"

namespace luaspy {

// Counts of a run so far.
struct LoopCounts {
  std::int64_t ticks = 0;
  std::int64_t duration_ns = 0;  // up to the last tick
  std::int64_t sampled_ns = 0;   // of these: outside of pauses
  bool target_ended = false;
  std::int64_t unheard = 0;         // CpuSamplers::unheard()
  Precedence precedence;            // CpuSamplers::precedence()
  CpuUse cpu;                       // used up to now, outside of pauses
  std::int64_t sampled_cpu_ns = 0;  // of cpu.lua_ns: samples of threads that executed, each for an interval of ticks
};

// What to say when LoopCounts::unheard grows.
inline constexpr const char* unheard_text =
    "luaspy: a thread was stopped for more than a second, because the kernel did not report the stop to luaspy. It is "
    "running again. Please report this.\n";

// All functions are called by the thread that runs the loop.
class SampleSink {
 public:
  virtual ~SampleSink() = default;
  // Before all others: the time from which Tick::at_ns counts from now on.
  virtual void begin(system::Clock::time_point /*start*/) {}
  // One tick of one thread: a stack or a loss. Sample::again is never set.
  virtual void add(ThreadId thread, const Tick& tick, const Sample& sample) = 0;
  // Ticks of a thread that slept, or that could run but had no CPU, if samples of these were not
  // requested.
  virtual void add_idle(ThreadId thread, std::int64_t count) = 0;
  virtual void add_waiting(ThreadId thread, std::int64_t count) = 0;
  // Ticks without a result.
  virtual void add_loss(Loss loss, std::int64_t count) = 0;
  // What was found beside the ticks.
  virtual void add_suspended(const SuspendedLook&) {}
  // A process is no longer sampled, while others are: it has ended, or executed another program.
  virtual void end(int /*pid*/, const Tick&) {}
  // With LoopOptions::renews_tables: from now on all threads and stacks have other numbers.
  virtual void tables_renewed() {}
  // After each tick, and ten times a second.
  virtual void look(const LoopCounts&) {}
  virtual bool has_enough() { return false; }
  // Called before luaspy is stopped by Ctrl-Z, while it holds no thread of the target, and after it
  // runs again.
  virtual void before_suspend() {}
  virtual void after_suspend() {}
};

}  // namespace luaspy
