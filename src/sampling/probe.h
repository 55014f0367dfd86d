#pragma once
// A kind of look at a target: at the stacks of its threads, at a rate (sampling_loop.h); at its allocations, by the
// bytes that it allocates (allocations/allocation_loop.h). Those of a recording have turns (probe_turns.h), so that
// neither sees what the other one does to the target.

#include "base/result.h"
#include "system/calls.h"

namespace luaspy {

class SampledProcess;

class Probe {
 public:
  virtual ~Probe() = default;
  // Returns at that time, or when the recording has ended. Outside of it, the target is left alone, and time does not
  // count. An Error: this probe cannot look at that target.
  virtual Result<void> run_until(system::Clock::time_point until) = 0;
  // Whether the recording has ended: the target has, its time is over, a signal asks luaspy to end, or there is enough.
  virtual bool ended() const = 0;
  // A process is about to be dropped: takes what was found about it, and forgets it.
  virtual void forget(SampledProcess& process) = 0;
};

}  // namespace luaspy
