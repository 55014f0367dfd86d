#pragma once
// Where luaspy's own threads run, and how soon they get a CPU.

#include <pthread.h>

#include <vector>

namespace luaspy {

// The CPUs that the calling thread may use, ascending; empty if the kernel does not report them.
std::vector<int> usable_cpus();
// These without that one, or all of them if there is no other.
std::vector<int> others_than(int cpu, std::vector<int> cpus);
// From now on, the calling thread runs only on these CPUs. False if that is not permitted.
bool stay_on(const std::vector<int>& cpus);

// Lets the calling thread run soon after it wakes: Linux from 6.12 on prefers it to threads whose
// slices are longer (sched_setattr(2), sched_runtime). Like come_at_once(), it leaves a scheduling
// policy that the user has chosen for luaspy (chrt) as it is.
void come_soon();
// Lets the calling thread run as soon as it wakes. True: immediately, as a real-time thread of that priority,
// unless one that precedes it runs (urgency.h). False: luaspy has no right to that; the thread then usually
// runs soon.
bool come_at_once(int priority = 1);

// Starts a thread that blocks all signals except SIGALRM, which ends its waits: signals are handled
// by the main thread. False if it cannot be started.
bool start_thread(pthread_t& thread, void* (*run)(void*), void* argument);

}  // namespace luaspy
