#pragma once
// Where luaspy's own threads run, and how soon they get a CPU.

#include <pthread.h>

#include <vector>

namespace luaspy {

// The CPUs that the calling thread may use, ascending; empty if the kernel does not tell.
std::vector<int> usable_cpus();
// The calling thread runs on these from now on. False if it may not.
bool stay_on(const std::vector<int>& cpus);

// Both overrule nobody who has chosen a policy for luaspy (chrt). The calling thread is let run
// soon after it wakes: Linux from 6.12 on prefers it to threads whose slices are longer
// (sched_setattr(2), sched_runtime).
void come_soon();
// The calling thread is let run as soon as it wakes. True: at once, as a real-time thread. False:
// the right to that is missing; then soon, as a rule.
bool come_at_once();

// A thread that hears no signal but SIGALRM, which ends its waits: signals are the main thread's to
// hear of. False if it cannot be made.
bool start_thread(pthread_t& thread, void* (*run)(void*), void* argument);

}  // namespace luaspy
