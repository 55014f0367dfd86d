#pragma once
// What sampling allocations gives, and who takes it.

#include <cstdint>
#include <optional>

#include "allocations/block_use.h"
#include "allocations/burst.h"
#include "allocations/call_kinds.h"
#include "base/result.h"
#include "base/sample.h"

namespace luaspy {

class HeapReader;
class Session;

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

}  // namespace luaspy
