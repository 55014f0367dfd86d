#include "attach/own_cpu.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "attach/urgency.h"

namespace luaspy {

std::vector<int> usable_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> others_than(int cpu, std::vector<int> cpus) {
  if (cpus.size() > 1) std::erase(cpus, cpu);
  return cpus;
}

bool stay_on(const std::vector<int>& cpus) { return move(0, cpus); }

void come_soon() {
  if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER) ask_for_short_slices();
}

bool come_at_once(int priority) {
  const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  if (policy == SCHED_OTHER && make_real_time(0, priority)) return true;
  come_soon();
  prctl(PR_SET_TIMERSLACK, 1);  // ns; the default is 50 µs, except for real-time threads
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

bool start_thread(pthread_t& thread, void* (*run)(void*), void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGALRM);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&thread, nullptr, run, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace luaspy
