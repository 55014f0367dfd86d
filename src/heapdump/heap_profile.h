#pragma once
// A heap as a profile of bytes, for the writers of profiles: who holds what, from the roots inwards.
//
// The stack of an object is that of its box (heap_boxes.h). Its weight is its own size, so all
// weights together are the live bytes exactly; each object is a sample. Each Lua state is a thread of
// the profile.

#include <span>

#include "heap/heap_analysis.h"
#include "heap/heap_snapshot.h"
#include "profile/profile.h"

namespace luaspy {

// All analyses must be known ones. `most_depth`: boxes above each other; what is deeper counts for
// the last of them.
Profile heap_profile(const HeapSnapshot& snapshot, std::span<const HeapAnalysis* const> analyses,
                     std::size_t most_depth = 100);

}  // namespace luaspy
