#pragma once
// exec ends all other threads of a process. A traced one has not ended until its tracer has received
// the report, and until then PTRACE_SEIZE of any thread of that process blocks (kernel/ptrace.c:
// cred_guard_mutex). A loop that seizes threads while it traces others of the same process would wait
// for itself, and the program with it. So another thread of luaspy takes these reports.

#include <sys/types.h>

#include <mutex>
#include <set>
#include <utility>

#include "system/calls.h"

namespace luaspy {

class Reaper {
 public:
  // To be called before the loop seizes a thread.
  void watch(pid_t tid, pid_t process) {
    const std::lock_guard lock(lock_);
    if (tid != process) watched_.insert(tid);  // exec itself ends the first thread
  }
  // For the loop: `is_traced` tells which threads still are. Returns those that have ended.
  template <typename IsTraced>
  std::set<pid_t> drain_ended(const IsTraced& is_traced) {
    const std::lock_guard lock(lock_);
    std::erase_if(watched_, [&](pid_t tid) { return !is_traced(tid); });
    return std::exchange(ended_, {});
  }
  // For the other thread, some times a second.
  void reap() {
    const std::lock_guard lock(lock_);
    std::erase_if(watched_, [&](pid_t tid) { return system::reap_if_ended(tid) && ended_.insert(tid).second; });
  }

 private:
  std::mutex lock_;
  std::set<pid_t> watched_, ended_;
};

}  // namespace luaspy
