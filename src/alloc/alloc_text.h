#pragma once
// What luaspy alloc found, as text for people.

#include <map>
#include <string>

#include "alloc/allocation_loop.h"
#include "alloc/live_recording.h"
#include "base/mode.h"
#include "profile/profile.h"

namespace luaspy {

// Bytes and objects by what they are for.
struct AllocationTypes {
  struct Amount {
    double bytes = 0, calls = 0;
  };
  std::map<std::string, Amount> by_name;  // name(BlockUse)
  void add(const AllocationSample& allocation);
};

// How far a share of about a half may be from the truth by chance, in 95 of 100 recordings, in
// points. `profile`: each sample has a weight of its own.
double uncertainty(const Profile& profile, double sum_of_squares);

// How much of the bytes no sample stands for, as a line; "" if that is next to nothing.
std::string unsampled_text(const CallKinds::Unsampled& unsampled);

// What is still in use at the end.
std::string live_text(const LiveRecording& live, Mode mode);

// The text that ends a recording.
std::string alloc_text(const AllocationCounts& counts, const AllocationTypes& types, const Profile& bytes,
                       const Profile& objects, double points, Mode mode);

}  // namespace luaspy
