#pragma once
// What luaspy alloc found, as text for people.

#include <map>
#include <string>

#include "base/mode.h"

namespace luaspy {

class LiveRecording;
class Profile;
struct AllocationCounts;
struct AllocationSample;

// Bytes and objects by what they are for.
struct AllocationTypes {
  struct Amount {
    double bytes = 0, calls = 0;
  };
  std::map<std::string, Amount> by_name;  // name(BlockUse)
  void add(const AllocationSample& allocation);
};

// What is still in use at the end.
std::string live_text(const LiveRecording& live, Mode mode);

// The text that ends a recording.
std::string alloc_text(const AllocationCounts& counts, const AllocationTypes& types, const Profile& bytes,
                       const Profile& objects, double points, Mode mode);

}  // namespace luaspy
