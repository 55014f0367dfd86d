#include "attach/urgency.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace luaspy {
namespace {

constexpr int deadline_policy = 6;  // SCHED_DEADLINE, linux/sched.h, which cannot be included beside sched.h

// linux/sched/types.h, sched_attr, for sched_setattr(2).
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes), policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // ns
};

cpu_set_t set_of(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

}  // namespace

std::string urgency_text(Urgency urgency) {
  if (urgency.is_ordinary()) return {};
  if (urgency.is_deadline()) return "the deadline policy";
  return fmt::format("real-time priority {}", urgency.priority());
}

Urgency urgency_of(pid_t tid) {
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, tid, &attributes, sizeof attributes, 0) != 0) return {};
  if (attributes.policy == deadline_policy) return Urgency::deadline();
  if (attributes.policy != SCHED_FIFO && attributes.policy != SCHED_RR) return {};
  return Urgency::real_time(
      static_cast<int>(std::clamp<std::uint32_t>(attributes.priority, 1, Urgency::highest_priority)));
}

bool is_held_on_a_cpu(pid_t tid) {
  cpu_set_t set;
  return sched_getaffinity(tid, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}

void ask_for_short_slices() {
  SchedulingAttributes attributes;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.runtime = 100'000;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void make_like_this(pthread_t own_thread) {
  int policy = 0;
  sched_param parameters{};
  if (pthread_getschedparam(pthread_self(), &policy, &parameters) == 0)
    (void)pthread_setschedparam(own_thread, policy, &parameters);
}

bool move(pid_t own_thread, const std::vector<int>& cpus) {
  const cpu_set_t set = set_of(cpus);
  return sched_setaffinity(own_thread, sizeof set, &set) == 0;
}

bool move(pthread_t own_thread, const std::vector<int>& cpus) {
  const cpu_set_t set = set_of(cpus);
  return pthread_setaffinity_np(own_thread, sizeof set, &set) == 0;
}

bool make_real_time(pid_t own_thread, int priority) {
  const sched_param parameters{priority};
  return sched_setscheduler(own_thread, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
}

void make_ordinary(pid_t own_thread) {
  const sched_param none{0};
  (void)sched_setscheduler(own_thread, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
}

void make_ordinary(pthread_t own_thread) {
  const sched_param none{0};
  (void)pthread_setschedparam(own_thread, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
}

// sched(7), "Privileges and resource limits": an unprivileged thread may raise its priority up to the soft
// limit. Whether luaspy is privileged is known only by trying.
int make_most_urgent(pthread_t own_thread) {
  const auto give = [&](int priority) {
    const sched_param parameters{priority};
    return pthread_setschedparam(own_thread, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
  };
  if (give(Urgency::highest_priority)) return Urgency::highest_priority;
  rlimit limit{};
  if (getrlimit(RLIMIT_RTPRIO, &limit) != 0 || limit.rlim_cur == 0) return 0;
  const auto priority = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, Urgency::highest_priority));
  return give(priority) ? priority : 0;
}

}  // namespace luaspy
