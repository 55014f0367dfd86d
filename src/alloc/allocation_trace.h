#pragma once
// The stacks of allocations in a .heapsnapshot of the end of a recording (heapdump/heapsnapshot.h).

#include <span>

#include "alloc/live_recording.h"
#include "heapdump/heapsnapshot.h"
#include "output/format.h"

namespace luaspy {

// Only alloc writes it with stacks: what has the heap alone has none. DevTools shows them in files that
// end in .heaptimeline.
extern const Format allocation_trace_format;

// All stacks, with what was allocated by each, and which of them made the objects that are in use; of
// parts of objects nothing is said. `bytes`, `objects`: of the same samples in the same order, with
// settled names. `lines`: their frames have the line being executed.
HeapsnapshotAllocations allocation_trace(const Profile& bytes, const Profile& objects, bool lines,
                                         std::span<const LiveRecording::InUse> in_use);

}  // namespace luaspy
