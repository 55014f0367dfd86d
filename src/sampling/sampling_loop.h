#pragma once
// Looks at every thread of a target at a given rate: the part that record and top share.

#include <memory>
#include <optional>

#include "attach/kernel_log.h"
#include "sampling/probe.h"
#include "sampling/sample_sink.h"
#include "system/calls.h"
#include "system/signals.h"

namespace luaspy {

class ProcessTree;

struct LoopOptions {
  double rate = 100;                 // Hz
  std::optional<double> duration{};  // s; without it until the target ends, a signal asks luaspy to end, or the sink
                                     // has enough
  double max_stopped = 10;           // % of the time that a thread may stand still
  bool always_stop = false;          // with ptrace, even if threads can be read without a stop (attach/switch_log.h)
  std::shared_ptr<const KernelLogs> kernel{};  // record where threads are in the kernel (KernelAccess::logs)
  bool renews_tables = false;  // the recording may have no end: ProcessTree::tables() must not grow without bound
};

// Call system::watch_signals() before, and use it in the thread that handles signals: all others
// block them.
class SamplingLoop : public Probe {
 public:
  // All arguments must outlive it.
  SamplingLoop(ProcessTree& tree, const LoopOptions& options, SampleSink& sink, LoopCounts& counts);
  ~SamplingLoop() override;

  // It always succeeds.
  Result<void> run_until(system::Clock::time_point until) override;
  bool ended() const override;
  void forget(SampledProcess& process) override;
  // When the recording began: samples are so many ns later.
  system::Clock::time_point start() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// All of a recording.
void run_loop(ProcessTree& tree, const LoopOptions& options, SampleSink& sink, LoopCounts& counts);

}  // namespace luaspy
