#pragma once
// Threads that could run but have no CPU: other threads use it, or their cgroup has used up its
// quota. Only /proc and the cgroup are read; the target is not touched.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attach/process.h"
#include "attach/waits/wait.h"
#include "system/calls.h"

namespace luaspy {

// What /proc and the cgroup report about a thread at one time.
struct CpuReading {
  system::Clock::time_point at;
  Thread::Schedule schedule;
  char letter = '?';                    // as Thread::state_letter()
  std::uint64_t sleeps = 0;             // how often it has given up its CPU to wait for something
  std::vector<std::int64_t> throttled;  // ns, for each file of cpu_stat_files(); -1 if it cannot be read
};
// nullopt if the thread had a CPU for at least 90 % of the time, sleeps now, or slept in between
// and waited for less than 10 %. `counted_late`: the kernel may count the CPU time of a thread that
// runs without interruption up to a second late.
std::optional<CpuWait> cpu_wait(const CpuReading& from, const CpuReading& to, bool counted_late);

// The files that say how long a thread's cgroup and the enclosing ones were throttled, innermost
// first, derived from /proc/TID/cgroup and /proc/self/mountinfo. Empty if they are not mounted
// here, as in many containers.
std::vector<std::string> cpu_stat_files(std::string_view cgroups, std::string_view mounts);
// The throttled time in such a file's text, ns; -1 if the text does not have it.
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
