#pragma once
// luaspy record --alloc: samples of time and of allocations in one recording, in turns.
//
// A thread has only one tracer, and both loops keep threads to themselves: the CPU samplers for the time
// of a look, the loop of allocations for as long as it runs (allocation_loop.h). A tick inside of that
// loop would have to stop a thread from another CPU, which favours system calls (cpu_samplers.h). So the
// recording is divided into slices, and the loops take turns. The length of a slice is random: a
// program with a period is not in step, and the shares of each half are those of the whole. Time has
// half of the samples that it would have alone. Allocations have nearly as many, as the cost is of all
// of the program's time.

#include "base/result.h"
#include "record/record.h"

namespace luaspy {

// Returns what record() returns. An Error, too, if no allocation could be trapped.
Result<int> record_with_allocations(const RecordOptions& options);

}  // namespace luaspy
