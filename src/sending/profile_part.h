#pragma once
// A profile that is too large for one message of an engine is sent in parts.

#include <cstddef>

#include "profile/profile.h"

namespace luaspy {

// The samples from the `first` on, `count` of them at most, in the order of whole.counts(); with the names and the
// metadata of the whole. Of a stack of more than `most_frames` (at least 3) the outermost frame, the marker "[...]" and
// the innermost ones stay.
Profile part_of(const Profile& whole, std::size_t first, std::size_t count, std::size_t most_frames);

// Of the deepest of its stacks: frames.
std::size_t depth_of(const Profile& profile);

}  // namespace luaspy
