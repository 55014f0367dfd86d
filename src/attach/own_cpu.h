#pragma once
// Where luaspy's own threads run, and how soon they get a CPU.

#include <vector>

namespace luaspy {

// The CPUs that the calling thread may use, ascending; empty if the kernel does not tell.
std::vector<int> usable_cpus();
// The calling thread runs on these from now on. False if it may not.
bool stay_on(const std::vector<int>& cpus);

// The calling thread is let run as soon as it wakes. True: at once, as a real-time thread. False: the right to that is missing; Linux from 6.12 on then
// prefers it to threads whose slices are longer, which is soon as a rule (sched_setattr(2), sched_runtime). Whoever has chosen a policy for luaspy
// (chrt) is not overruled.
bool come_at_once();

}  // namespace luaspy
