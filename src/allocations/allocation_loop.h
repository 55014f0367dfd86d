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

#include "allocations/block_use.h"
#include "allocations/burst.h"
#include "allocations/call_kinds.h"
#include "base/result.h"
#include "sampling/probe.h"
#include "sampling/process_tree.h"
#include "system/calls.h"

namespace luaspy {

// One allocation, and what it stands for.
struct AllocationSample {
  AllocationCall call;
  Address G = 0;                // of the Lua
  std::uint64_t identity = 0;   // of the Lua (Lua::identity)
  Block block;                  // address 0: not known
  BlockUse use;                 // once the program had used it
  double bytes = 0, calls = 0;  // of the program that it stands for
};

struct AllocationCounts {
  std::int64_t duration_ns = 0;  // without pauses
  std::int64_t bursts = 0;       // that did not end before
  std::int64_t samples = 0;      // of these
  std::int64_t frees = 0;        // bursts in which the collector freed for too long
  std::int64_t cut = 0;          // bursts that did not come to their end: the program had stopped allocating
  std::int64_t unread = 0;       // the stack could not be read
  std::int64_t trapped = 0;      // calls
  std::int64_t spent_ns = 0;     // of the program's time, from the first trapped call of each burst on
  double calls_a_burst = 0;      // the average at the end
  double bytes = 0;              // allocated, estimated
  CallKinds::Unsampled unsampled;
  bool shares_cpu = false;       // luaspy and the program have one CPU together: `bytes` leaves out what was freed soon
  std::optional<Error> refused;  // why some Lua's allocations cannot be trapped
  bool target_ended = false;
};

struct AllocationLoopOptions {
  std::optional<double> duration{};  // s
  double max_cost = 3;               // % of the program's time
  // For tests, which make luaspy late: called before luaspy reads what a block is for.
  std::function<void()> before_use{};
};

class AllocationSink {
 public:
  virtual ~AllocationSink() = default;
  // Threads and stacks have the numbers of ProcessTree::tables().
  virtual void add(ThreadId thread, const Tick& tick, const AllocationSample& allocation, Sample& sample) = 0;
  virtual void add_loss(Loss loss) = 0;
  // At each probe of a Lua: its global_State, its identity, when, ns since the recording began, and its heap
  // while it runs.
  virtual void look_at(Session&, Address, std::uint64_t, std::int64_t, const HeapReader&) {}
  // Some times a second.
  virtual void look(const AllocationCounts& counts) = 0;
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
