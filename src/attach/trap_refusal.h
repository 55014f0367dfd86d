#pragma once
// Why a thread's calls cannot be trapped: which of the causes that Linux knows it is, and what helps.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "system/calls.h"

namespace luaspy {

// What decides it (perf_event_open(2), and kernel/events/core.c for what that page leaves out).
struct TrapCase {
  system::Failure failure;  // of perf_event_open
  int paranoid = 2;         // kernel.perf_event_paranoid
  bool filtered = false;    // luaspy runs under a seccomp filter
  bool root = false;
  std::optional<std::vector<std::string>> modules{};  // system::security_modules()
};

Error explain_no_trap(const TrapCase& trap_case);
// The same, as things are here.
Error explain_no_trap(const system::Failure& failure);

}  // namespace luaspy
