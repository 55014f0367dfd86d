#pragma once
// Where luaspy has reason to doubt what it shows: by its own counts of what it could not explain.
// Pure functions of these counts.

#include <optional>
#include <string>
#include <vector>

#include "base/sample.h"

namespace luaspy {

// What was seen of a target so far.
struct DoubtFacts {
  std::int64_t pid = 0;
  bool has_lua = false;  // a Lua is mapped, or states were seen
  std::int64_t samples = 0;
  Quality quality;
  LossCounts losses{};
  double system_share = -1;  // About::system_share
};

// Each doubt is a sentence without a full stop: what was seen, what it may mean, what to send us.
// None of few samples (fewer than 100): there chance alone makes such numbers.
std::vector<std::string> doubts(const DoubtFacts& facts);

// How many samples were taken at a return from a system call should be as the share of system time
// in all CPU time of the same threads: a stop that comes from elsewhere waits for the target's next
// system call. `system_share`: 0 to 1; below 0: not known. A doubt if there are more than 4
// standard deviations and 3 points of 100 too many. Fewer are no doubt: page faults and interrupts
// take system time, too.
std::optional<std::string> system_call_doubt(std::int64_t pid, std::int64_t samples, std::int64_t at_syscall,
                                             double system_share);

}  // namespace luaspy
