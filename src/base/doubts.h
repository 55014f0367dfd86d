#pragma once
// Reasons to doubt what luaspy shows, derived from its own counts of what it could not explain.
// Pure functions of these counts.

#include <optional>
#include <string>
#include <vector>

#include "base/cpu_use.h"
#include "base/sample.h"

namespace luaspy {

// What was seen of a target so far.
struct DoubtFacts {
  std::int64_t pid = 0;
  bool has_lua = false;  // a file with a Lua core is mapped, or Lua states were seen
  std::int64_t samples = 0;
  Quality quality;
  LossCounts losses{};
  CpuUse cpu;
  std::int64_t sampled_cpu_ns = 0;  // of cpu.lua_ns
  double rate = 0;                  // of ticks, Hz
};

// Each doubt is a sentence without a full stop: what was seen, what it may mean, what helps. Where the cause is not
// known, it asks for a report.
// Fewer than 100 samples give none, because chance alone produces such numbers there.
std::vector<std::string> doubts(const DoubtFacts& facts);

// Less than nine tenths of the CPU time was sampled.
std::optional<std::string> coverage_doubt(const DoubtFacts& facts);

// The share of samples that were taken at a return from a system call should be that of system time
// in the CPU time of the same threads. It is too high if stops come from another CPU, because those
// wait for the target's next system call. `system_share`: 0 to 1, at most; below 0: unknown. There is a
// doubt if the share of samples is too high by more than 4 standard deviations and 3 percentage
// points. A share that is too low is no doubt: page faults and interrupts take system time, too.
std::optional<std::string> system_call_doubt(std::int64_t pid, std::int64_t samples, std::int64_t at_syscall,
                                             double system_share);

}  // namespace luaspy
