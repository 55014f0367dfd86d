#pragma once
// Samples the allocations of all Luas of a target.
//
//   probe   every half millisecond or so, the size of each heap is read twice, some µs apart, while
//           the program runs: how much it allocates right now (growth_probe.h)
//   gate    from that, when to trap (byte_gate.h)
//   burst   calls of the allocation function are trapped in the thread that runs the Lua, until a
//           random number of them has made the heap larger; at the last one the thread stands still, and
//           is let run until the call returns: there its stack is read, and the block has an address
//
// Only the last call of a burst is a sample. What follows a pause of the program is not more
// probable then, and no site of a loop is, if the burst is longer than the loop. The others tell for how
// much it stands (call_kinds.h).

#include <functional>
#include <memory>
#include <optional>

#include "allocations/allocation_sink.h"
#include "base/result.h"
#include "sampling/probe.h"
#include "system/calls.h"

namespace luaspy {

class ProcessTree;

struct AllocationLoopOptions {
  std::optional<double> duration{};  // s
  double max_cost = 3;               // % of the program's time
  bool of_turns = false;             // and of that, only while this probe has its turns: they come seldom
  // For tests, which make luaspy late: called before luaspy reads what a block is for.
  std::function<void()> before_use{};
};

class AllocationLoop : public Probe {
 public:
  // All arguments must outlive it. `began`: from when the times of samples are counted.
  AllocationLoop(ProcessTree& tree, const AllocationLoopOptions& options, AllocationSink& sink,
                 AllocationCounts& counts, system::Clock::time_point began);
  ~AllocationLoop() override;

  // An Error: no allocation could be trapped. It runs in a thread of its own, so that whatever is still traced is
  // released at its end.
  Result<void> run_until(system::Clock::time_point until) override;
  // Also if nothing could be trapped.
  bool ended() const override;
  void forget(SampledProcess& process) override;
  // Bursts that go on in the next run, if there is one.
  std::int64_t open_bursts() const;

 private:
  struct Kept;
  class Loop;
  std::unique_ptr<Kept> kept_;
};

// Returns when the target has ended, the time is over, or a signal asks luaspy to end. An Error: no
// allocation could be trapped.
Result<void> run_allocation_loop(ProcessTree& tree, const AllocationLoopOptions& options, AllocationSink& sink,
                                 AllocationCounts& counts);

}  // namespace luaspy
