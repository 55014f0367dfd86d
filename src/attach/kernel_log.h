#pragma once
// Whether a tick found a thread in the kernel, and where. A stop cannot tell: a thread stands still at the border
// to user space, whatever it did before.
//
// perf_event_open(2): a software clock of one CPU (PERF_COUNT_SW_CPU_CLOCK) that records the kernel's call chain if
// it expires while the CPU executes in the kernel. It is set to expire with the tick, on the CPU sampler's own CPU, so
// that one timer interrupt serves both: there is one record for a tick at which the CPU was in the kernel, and none
// for the others. It records whatever thread that was; at() asks for one thread. Available to root, with
// CAP_PERFMON, and to everybody if /proc/sys/kernel/perf_event_paranoid is below 1.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>

#include "attach/record_ring.h"
#include "base/kernel_chain.h"
#include "system/calls.h"

namespace luaspy {

class KernelLog {
 public:
  // nullptr: the kernel does not allow it, or has no memory for it; `failure` says why (RecordRing::open()).
  static std::unique_ptr<KernelLog> open(int cpu, system::Failure& failure);

  // The next tick is due then. Call it on that CPU, before sleeping until then. Takes some µs.
  void expect(system::Clock::time_point due);
  // No tick is expected for a long time.
  void pause();
  // Sets `chain` to where the thread was when the tick came for which expect() was called last; empty if it was not
  // in the kernel, or not on that CPU. Bounded by the size of the ring buffer, which is a page.
  void at(system::Clock::time_point due, pid_t tid, KernelChain& chain) const;

  // The record of one thread from a time on. For at() and the tests.
  static void find(const RecordView& records, std::uint64_t from_ns, pid_t tid, KernelChain& chain);

 private:
  explicit KernelLog(RecordRing ring) : ring_(std::move(ring)) {}
  void set_period(std::uint64_t ns);

  RecordRing ring_;
};

// By CPU. They log nothing that is asked for until expect() is called.
using KernelLogs = std::map<int, std::unique_ptr<KernelLog>>;

}  // namespace luaspy
