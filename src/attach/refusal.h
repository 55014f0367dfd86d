#pragma once
// Why luaspy may not look at a process, or not stop it: the one cause among those that Linux has,
// and the command that mends it.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace luaspy {

// Whose rights a process has (credentials(7)).
struct Rights {
  std::array<uid_t, 3> users{}, groups{};      // real, effective, saved
  std::uint64_t permitted = 0, effective = 0;  // capabilities
  std::string user_namespace;                  // as /proc/PID/ns/user links to it; empty if that may not be read
};

// What decides whether luaspy may trace a process: ptrace(2), "Ptrace access mode checking", in its
// order.
struct TraceCase {
  pid_t pid = 0;
  Rights luaspy;
  std::optional<Rights> target;  // none: /proc tells nothing of it (hidepid)
  uid_t owner = 0;               // of /proc/PID, which is told even then
  bool dumpable = true;
  int yama_scope = 0;              // kernel.yama.ptrace_scope; 0 without Yama
  bool contained = false;          // luaspy lives in a user namespace of its own
  bool no_new_privileges = false;  // luaspy cannot gain rights: sudo does not work
  bool filtered = false;           // luaspy runs under a seccomp filter
};

// One sentence or two: "it belongs to user 0, luaspy runs as user 1000; run luaspy with sudo."
std::string why_refused(const TraceCase& trace_case);

// Of a process that may not be looked at.
Error explain_refusal(pid_t pid);

// /proc does not show it: there is no process `pid`, or it is hidden, or /proc is not there, or not
// that of luaspy's processes.
Error explain_absence(pid_t pid);
// Is /proc the one of luaspy's own process numbers? Otherwise it would look at one process and stop
// another.
bool has_own_proc();

// Why a thread of `pid` could not be stopped though it may be looked at.
Error explain_no_stop(pid_t pid);

}  // namespace luaspy
