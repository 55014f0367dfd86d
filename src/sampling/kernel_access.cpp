#include "sampling/kernel_access.h"

#include <fmt/format.h>

#include "attach/own_cpu.h"
#include "attach/refusal.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

constexpr double highest_rate = 5000;  // Hz; an estimate: to expect a tick took 7 to 12 µs in a trial

int setting(const char* name) {
  return number<int>(system::read_file(fmt::format("/proc/sys/kernel/{}", name)).value_or(""));
}

// proc(5): it takes CAP_SYS_ADMIN.
bool shows_stacks() { return !system::read_file("/proc/self/stack").value_or("").empty(); }

// The chains of all CPUs can be recorded, or none are; then it adds a note.
std::shared_ptr<const KernelLogs> open_logs(double rate, std::vector<std::string>& notes) {
  if (rate > highest_rate) {
    notes.push_back(fmt::format("frames of the kernel are not shown: they cost too much above {:.0f} ticks a second",
                                highest_rate));
    return nullptr;
  }
  auto logs = std::make_shared<KernelLogs>();
  system::Failure failure;
  for (const int cpu : usable_cpus()) {
    std::unique_ptr<KernelLog> log = KernelLog::open(cpu, failure);
    if (log == nullptr) {
      notes.push_back(why_no_kernel(
          {failure.access_denied() || failure.not_permitted(), is_filtered(), setting("perf_event_paranoid"),
           failure ? failure.text() : "no memory may be locked (kernel.perf_event_mlock_kb)"}));
      return nullptr;
    }
    logs->emplace(cpu, std::move(log));
  }
  return logs;
}

}  // namespace

std::string why_no_kernel(const KernelRefusal& refusal) {
  const std::string what = "frames of the kernel are not shown: ";
  if (refusal.denied && refusal.paranoid > 0)
    return what + fmt::format(
                      "kernel.perf_event_paranoid is {}, and luaspy has no CAP_PERFMON; run luaspy with sudo, "
                      "or set it to 0: sysctl kernel.perf_event_paranoid=0",
                      refusal.paranoid);
  if (refusal.filtered)
    return what + fmt::format("a seccomp filter refuses perf_event_open(2), as it does in many containers ({})",
                              refusal.failure);
  return what + fmt::format("perf_event_open(2): {}", refusal.failure);
}

KernelAccess ask_for_kernel(double rate, bool idle) {
  KernelAccess access;
  access.logs = open_logs(rate, access.notes);
  const bool sleeping = idle && shows_stacks();
  if (idle && !sleeping)
    access.notes.push_back(
        "frames of the kernel are not shown for sleeping threads: only root (CAP_SYS_ADMIN) may read "
        "/proc/PID/stack");
  if (access.logs == nullptr && !sleeping) return access;
  access.symbols = std::make_shared<const KernelSymbols>(
      access.logs != nullptr ? system::read_file("/proc/kallsyms").value_or("") : std::string());
  if (access.logs != nullptr && access.symbols->empty())
    access.notes.push_back(
        fmt::format("functions of the kernel have no names, and are shown as [kernel]: "
                    "kernel.kptr_restrict is {}, and luaspy {}",
                    setting("kptr_restrict"),
                    setting("kptr_restrict") > 1 ? "may not see them; sysctl kernel.kptr_restrict=1 shows them to root"
                                                 : "has no CAP_SYSLOG; run luaspy with sudo"));
  return access;
}

std::shared_ptr<const KernelSymbols> kernel_for_sleeping() {
  return shows_stacks() ? std::make_shared<const KernelSymbols>() : nullptr;
}

}  // namespace luaspy
