#pragma once
// What a thread waits for in futex(2), as far as the memory there tells: a mutex and who holds it,
// or the end of another thread.

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
  pid_t owner = 0;  // mutex: who holds it; join: whose end is waited for. A live thread of the process, by luaspy's own
                    // numbers.
  enum class Timeout { none, relative, absolute_monotonic, absolute_realtime } timeout = Timeout::none;
  Address timeout_address = 0;  // of a struct timespec
};

// The arguments are those of the system call.
// `live`: luaspy's number for the live thread that the process knows by this one; 0 if it has none.
FutexWait explain_futex(const std::function<pid_t(pid_t)>& live, const std::array<std::uint64_t, 6>& arguments,
                        const Memory& memory);

// Which thread of the process goes by this number in its own PID namespace; 0 if none does.
pid_t thread_numbered(pid_t pid, pid_t number_inside);

}  // namespace luaspy
