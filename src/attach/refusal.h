#pragma once
// Why luaspy may not look at a process, or may not stop it: which of the causes that Linux knows it
// is, and the command that helps.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace luaspy {

// Whose rights a process has (credentials(7)).
struct Rights {
  std::array<uid_t, 3> users{}, groups{};      // real, effective, saved
  std::uint64_t permitted = 0, effective = 0;  // capabilities
  std::string user_namespace;                  // the target of the link /proc/PID/ns/user; empty if it may not be read
};

// What decides whether luaspy may trace a process: ptrace(2), "Ptrace access mode checking", in its
// order.
struct TraceCase {
  pid_t pid = 0;
  Rights luaspy;
  std::optional<Rights> target;  // nullopt: /proc shows nothing about it (hidepid)
  uid_t owner = 0;               // of /proc/PID, known even then
  bool dumpable = true;
  int yama_scope = 0;                               // kernel.yama.ptrace_scope; 0 without Yama
  bool contained = false;                           // luaspy lives in a user namespace of its own
  bool no_new_privileges = false;                   // luaspy cannot gain rights: sudo does not work
  bool filtered = false;                            // luaspy runs under a seccomp filter
  std::optional<std::vector<std::string>> modules;  // system::security_modules()
  std::string own_label, label;                     // system::security_label() of luaspy and of the process
};

// One sentence or two: "it belongs to user 0, luaspy runs as user 1000; run luaspy with sudo."
std::string why_refused(const TraceCase& trace_case);

// Whether luaspy runs under a seccomp filter.
bool is_filtered();

// Whether a process is about to end, or has ended: it has no memory then, and nothing can be read of it.
bool is_ending(pid_t pid);

// For a process that luaspy may not look at, or that has just ended.
Error explain_refusal(pid_t pid);

// For a process that /proc does not show: it does not exist, it is hidden, /proc is not mounted, or
// /proc belongs to another pid namespace than luaspy's.
Error explain_absence(pid_t pid);
// Does /proc belong to luaspy's own pid namespace? Otherwise luaspy would look at one process and
// stop another.
bool has_own_proc();

// Why a thread of `pid` could not be stopped, although luaspy may look at the process.
Error explain_no_stop(pid_t pid);

}  // namespace luaspy
