#pragma once
// What samples of allocations do not show, for people.

#include <string>

#include "allocations/call_kinds.h"
#include "profile/profile.h"

namespace luaspy {

// How far a share of about a half may be from the truth by chance, in 95 of 100 recordings, in
// points. `profile`: each sample has a weight of its own.
double uncertainty(const Profile& profile, double sum_of_squares);

// How much of the bytes no sample stands for, as a line; "" if that is next to nothing.
std::string unsampled_text(const CallKinds::Unsampled& unsampled);

}  // namespace luaspy
