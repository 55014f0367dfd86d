#include "attach/suspects.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace luaspy {
namespace {

// The modules with a hook in security_ptrace_access_check() and in security_perf_event_open() (Linux 6.12). Yama has
// one as well; its setting is asked before.
struct Suspect {
  std::string_view module, called;
  bool has_perf_events;
};
constexpr std::array<Suspect, 5> suspected = {{{"selinux", "SELinux", true},
                                               {"apparmor", "AppArmor", false},
                                               {"smack", "Smack", false},
                                               {"landlock", "Landlock (a sandbox that luaspy runs in)", false},
                                               {"bpf", "a BPF program that guards this machine", true}}};

}  // namespace

std::string suspects(const std::optional<std::vector<std::string>>& active, Forbidden what) {
  if (!active)
    return "the kernel gives no reason and does not say which security modules are active; one of them may forbid it";
  std::string text;
  for (const Suspect& suspect : suspected) {
    const bool has_a_say = what == Forbidden::tracing || suspect.has_perf_events;
    if (!has_a_say || std::ranges::find(*active, suspect.module) == active->end()) continue;
    text += (text.empty() ? "" : ", or ") + std::string(suspect.called);
  }
  if (text.empty()) return "the kernel gives no reason, and no security module that could forbid it is active";
  return text + " forbids it";
}

}  // namespace luaspy
