#pragma once
// What a thread waits for in futex(2), as far as the memory at the futex shows it: a mutex and its
// holder, or the end of another thread.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/memory.h"

namespace luaspy {

struct FutexWait {
  Address address = 0;
  enum class Kind { other, mutex, join } kind = Kind::other;
  pid_t owner = 0;  // mutex: its holder; join: the thread whose end is waited for. A live thread of the process,
                    // numbered as in luaspy's pid namespace.
  enum class Timeout { none, relative, absolute_monotonic, absolute_realtime } timeout = Timeout::none;
  Address timeout_address = 0;  // of a struct timespec
};

// The arguments are those of the system call. `live`: maps a thread number of the process's own pid
// namespace to luaspy's number for it; 0 if there is no such live thread.
FutexWait explain_futex(const std::function<pid_t(pid_t)>& live, const std::array<std::uint64_t, 6>& arguments,
                        const Memory& memory);

// The thread of the process that has this number in the process's own PID namespace; 0 if there is
// none.
pid_t thread_numbered(pid_t pid, pid_t number_inside);

}  // namespace luaspy
