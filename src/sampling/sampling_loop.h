#pragma once
// Looks at every thread of a target at a given rate: the part that record and top share.

#include <memory>
#include <optional>

#include "attach/kernel_log.h"
#include "sampling/precedence.h"
#include "sampling/process_tree.h"
#include "system/calls.h"
#include "system/signals.h"

namespace luaspy {

struct LoopOptions {
  double rate = 100;                 // Hz
  std::optional<double> duration{};  // s; without it until the target ends, a signal asks luaspy to end, or the sink
                                     // has enough
  double max_stopped = 10;           // % of the time that a thread may stand still
  bool always_stop = false;          // with ptrace, even if threads can be read without a stop (attach/switch_log.h)
  std::shared_ptr<const KernelLogs> kernel{};  // record where threads are in the kernel (KernelAccess::logs)
  bool renews_tables = false;  // the recording may have no end: ProcessTree::tables() must not grow without bound
};

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

// Receives what the loop finds. All functions are called by the thread that runs the loop. Threads and
// stacks have the numbers of ProcessTree::tables().
class SampleSink {
 public:
  virtual ~SampleSink() = default;
  // One tick of one thread: a stack or a loss. Sample::again is never set.
  virtual void add(ThreadId thread, const Tick& tick, const Sample& sample) = 0;
  // Ticks of a thread that slept, or that could run but had no CPU, if samples of these were not
  // requested.
  virtual void add_idle(ThreadId thread, std::int64_t count) = 0;
  virtual void add_waiting(ThreadId thread, std::int64_t count) = 0;
  // Ticks without a result.
  virtual void add_loss(Loss loss, std::int64_t count) = 0;
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

// Call system::watch_signals() before, and use it in the thread that handles signals: all others
// block them. It can pause: outside of run_until(), no thread of the target is looked at or stopped,
// and ticks are not counted.
class SamplingLoop {
 public:
  // All arguments must outlive it.
  SamplingLoop(ProcessTree& tree, const LoopOptions& options, SampleSink& sink, LoopCounts& counts);
  ~SamplingLoop();

  // Returns at that time, or when the recording has ended.
  void run_until(system::Clock::time_point until);
  // Whether the target has ended, the duration is over, a signal asks luaspy to end, or the sink has
  // enough.
  bool ended() const;
  // When the recording began: samples are so many ns later.
  system::Clock::time_point start() const;
  // A session is about to be dropped (ProcessTree::before_drop): takes what was found about it.
  void forget(Session& session);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// All of a recording.
void run_loop(ProcessTree& tree, const LoopOptions& options, SampleSink& sink, LoopCounts& counts);

}  // namespace luaspy
