#include "attach/waits/futex.h"

#include <fmt/format.h>
#include <linux/futex.h>

#include <algorithm>

#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

// glibc, sysdeps/nptl/bits/struct_mutex.h and its forms for x86 and aarch64: the same on 64-bit
// machines.
struct PthreadMutex {
  std::int32_t lock;  // 0 free, 1 held, 2 held and waited for (lowlevellock.h); robust ones: the holder's tid and
                      // FUTEX_WAITERS
  std::uint32_t count;
  std::int32_t owner;
  std::uint32_t nusers;
  std::int32_t kind;
};
static_assert(sizeof(PthreadMutex) == 20);

// nptl/pthreadP.h: PTHREAD_MUTEX_*_NP in the low bits, then robust, inheriting, protecting, shared,
// elision.
constexpr std::int32_t robust = 0x10, all_kinds = 0x3 | robust | 0x20 | 0x40 | 0x80 | 0x100 | 0x200;

// The holder of the mutex whose lock is at `address`, in the process's own numbering; 0 if it is
// not a glibc mutex. Threads wait for the internal locks of malloc and stdio in the same way, but
// these have no users and no owner where a mutex has them.
pid_t mutex_owner(const Memory& memory, Address address, std::uint32_t expected) {
  constexpr std::uint32_t locked_and_waited_for = 2;
  const std::optional<PthreadMutex> mutex = memory.get<PthreadMutex>(address);
  if (!mutex || mutex->owner <= 0 || mutex->nusers == 0 || mutex->nusers > (1 << 22) || (mutex->kind & ~all_kinds) != 0)
    return 0;
  const auto lock = static_cast<std::uint32_t>(mutex->lock);
  if (expected == locked_and_waited_for && lock == locked_and_waited_for && (mutex->kind & robust) == 0)
    return mutex->owner;
  const bool by_number = (mutex->kind & robust) != 0 && lock == expected &&
                         (lock & FUTEX_TID_MASK) == static_cast<std::uint32_t>(mutex->owner);
  return by_number ? mutex->owner : 0;
}

}  // namespace

pid_t thread_numbered(pid_t pid, pid_t number_inside) {
  constexpr std::string_view field = "\nNSpid:";  // proc(5): from luaspy's namespace to the innermost
  const std::string directory = fmt::format("/proc/{}/task", pid);
  const auto inside = [&](pid_t tid) {
    const std::string status = system::read_file(fmt::format("{}/{}/status", directory, tid)).value_or("");
    const std::size_t at = status.find(field);
    if (at == status.npos) return status.empty() ? 0 : tid;
    std::string_view rest = std::string_view(status).substr(at + field.size());
    rest = rest.substr(0, rest.find('\n'));
    pid_t last = 0;
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) last = number<pid_t>(word);
    return last;
  };
  if (number_inside <= 0) return 0;
  if (inside(number_inside) == number_inside) return number_inside;
  for (const pid_t tid : system::numeric_entries(directory)) {
    if (inside(tid) == number_inside) return tid;
  }
  return 0;
}

FutexWait explain_futex(const std::function<pid_t(pid_t)>& live, const std::array<std::uint64_t, 6>& arguments,
                        const Memory& memory) {
  FutexWait wait{arguments[0]};
  const auto operation = static_cast<std::uint32_t>(arguments[1]);
  const auto expected = static_cast<std::uint32_t>(arguments[2]);
  const std::uint32_t command = operation & static_cast<std::uint32_t>(FUTEX_CMD_MASK);
  const bool realtime = (operation & FUTEX_CLOCK_REALTIME) != 0;
  constexpr std::uint32_t lock_pi2 = 13;  // linux/futex.h since 5.14
  const bool locks = command == FUTEX_LOCK_PI || command == lock_pi2;
  const bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
  if (!locks && !waits && command != FUTEX_WAIT_REQUEUE_PI) return wait;
  wait.timeout_address = arguments[3];
  if (wait.timeout_address != 0) {
    wait.timeout = command == FUTEX_WAIT                  ? FutexWait::Timeout::relative
                   : realtime || command == FUTEX_LOCK_PI ? FutexWait::Timeout::absolute_realtime
                                                          : FutexWait::Timeout::absolute_monotonic;
  }
  if (!plausible_pointer(wait.address, 4)) return wait;
  if (locks) {
    const std::optional<std::uint32_t> word = memory.get<std::uint32_t>(wait.address);  // futex(2): the holder's tid
    wait.kind = FutexWait::Kind::mutex;
    if (word) wait.owner = live(static_cast<pid_t>(*word & FUTEX_TID_MASK));
    return wait;
  }
  if (!waits) return wait;
  wait.owner = live(mutex_owner(memory, wait.address, expected));
  if (wait.owner != 0) {
    wait.kind = FutexWait::Kind::mutex;
    return wait;
  }
  // nptl/pthread_join_common.c: a join waits at the tid in struct pthread, which the kernel clears
  // when the thread ends. That futex is shared, so FUTEX_PRIVATE is not set.
  const bool is_private = (operation & FUTEX_PRIVATE_FLAG) != 0;
  constexpr std::uint32_t lowest = 3;  // smaller values belong to locks and counters
  if (is_private || expected < lowest || memory.get<std::uint32_t>(wait.address) != expected) return wait;
  wait.owner = live(static_cast<pid_t>(expected));
  if (wait.owner != 0) wait.kind = FutexWait::Kind::join;
  return wait;
}

}  // namespace luaspy
