#pragma once
// Threads that want to run and have no CPU: others have it, or their cgroup has used up its quota.
// Nothing here touches the target.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attach/process.h"
#include "system/calls.h"

namespace luaspy {

// What a thread got of the time during which it was watched. All in ns.
struct CpuWait {
  std::int64_t window = 0;
  std::int64_t on_cpu = 0;
  std::optional<std::int64_t> waited;  // it also slept: of the rest, how long it waited for a CPU. Else it was all of
                                       // the rest
  std::int64_t throttled = 0;  // for how long at most its cgroup, or one around it, let nothing of it run; 0 also if
                               // that is not known
};

// What /proc and the cgroup say of a thread at one time.
struct CpuReading {
  system::Clock::time_point at;
  Thread::Schedule schedule;
  char letter = '?';                    // as Thread::state_letter()
  std::uint64_t sleeps = 0;             // how often it has given up a CPU to wait for something
  std::vector<std::int64_t> throttled;  // ns, of each file of cpu_stat_files(); -1 if it cannot be read
};
// nullopt if it had a CPU for at least 90 % of the time, sleeps now, or slept meanwhile and waited
// for less than 10 %. `counted_late`: the kernel may count the time of a thread that runs on
// undisturbed by a second late.
std::optional<CpuWait> cpu_wait(const CpuReading& from, const CpuReading& to, bool counted_late);

// "wants to run; had a CPU 26 % of the last second; throttled by its cgroup for 0.7 s".
std::string cpu_wait_text(const CpuWait& wait);

// The files that say how long a thread's cgroup and those around it were throttled, innermost
// first, by /proc/TID/cgroup and /proc/self/mountinfo. Empty if they are not mounted here, as in
// many containers.
std::vector<std::string> cpu_stat_files(std::string_view cgroups, std::string_view mounts);
// ns, by the text of such a file; -1 if it does not say.
std::int64_t throttled_in(std::string_view cpu_stat);

// Watches a thread from its construction on.
class CpuWatch {
 public:
  CpuWatch(pid_t pid, std::shared_ptr<Thread> thread);
  std::optional<CpuWait> so_far() const;

 private:
  pid_t pid_;
  std::shared_ptr<Thread> thread_;
  std::vector<std::string> stat_files_;
  bool counted_late_;
  CpuReading begin_;
};

}  // namespace luaspy
