#pragma once
// Why a thread does not run, as values: what it waits for (waiting.h), or that it has no CPU (cpu_wait.h).

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attach/halt.h"
#include "base/memory.h"

namespace luaspy {

struct OpenFile {
  enum class Kind { listening, connection, other } kind = Kind::other;
  int fd = -1;
  std::string what;  // "/var/log/app.log", "pipe:[12345]", "named pipe /run/in", "tcp 127.0.0.1:6379 listening",
                     // "eventfd"; "closed" if there is no such descriptor
};

// All text is printable. For a halted thread, `text` says that first: "frozen by its cgroup
// freezer, in read(fd 0: …)".
struct Wait {
  std::string system_call;        // "read"; "system call 999"; "page fault" if it sleeps outside of any system call
  std::string text;               // all of it, for a person: "read(fd 0: pipe:[12345], written by 4242 (bash))"
  std::optional<OpenFile> file;   // the one that the call is about
  std::vector<OpenFile> watched;  // epoll, poll, select: what is waited for; at most 1000
  std::optional<std::chrono::nanoseconds> timeout;  // as requested, or, if the call has a deadline, the time left;
                                                    // nullopt: for ever, or unknown
  std::optional<Address> futex;
  std::optional<pid_t> mutex_owner;    // the thread that holds the mutex
  std::optional<pid_t> joined_thread;  // the thread whose end is waited for
  std::vector<pid_t> children;         // wait4, waitid: those that could end it
  std::string wchan;                   // where it sleeps in the kernel; empty if the kernel does not report it
  bool uninterruptible = false;        // state D
  Halt halt;                           // why it stands still, in addition to what it waits for
};

// How a thread spent the time during which it was watched. All in ns.
struct CpuWait {
  std::int64_t window = 0;
  std::int64_t on_cpu = 0;
  std::optional<std::int64_t> waited;  // how long it waited for a CPU. nullopt: it never slept, so it waited whenever
                                       // it was not on a CPU
  std::int64_t throttled = 0;  // upper bound of how long its cgroup, or an enclosing one, let none of its threads run;
                               // 0 also if unknown
};

// "wants to run; had a CPU 26 % of the last second; throttled by its cgroup for 0.7 s".
std::string cpu_wait_text(const CpuWait& wait);

}  // namespace luaspy
