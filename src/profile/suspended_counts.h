#pragma once
// What a profile of suspended coroutines knows besides sums: how many there were at most, and how long they waited.

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"

namespace luaspy {

struct SuspendedCounts {
  // Coroutines that wait at one place, as the profile shows it.
  struct Place {
    StackId stack = empty_stack;
    LabelsId labels = no_labels;
    auto operator<=>(const Place&) const = default;
  };
  struct Extremes {
    std::int64_t most = 0;        // in one look
    std::int64_t longest_ns = 0;  // SuspendedGroup::longest_ns
  };
  std::int64_t looks = 0;      // each at all Luas
  std::int64_t looked_ns = 0;  // up to the last one: what averages are of
  std::int64_t most = 0;       // at once
  std::int64_t unread = 0;     // how often one could not be read
  std::map<Place, Extremes> places;
};

// One coroutine that has a number: where it was seen waiting, and when.
struct SuspendedTrack {
  struct Wait {
    StackId stack = empty_stack;
    std::int64_t start_ns = 0, end_ns = 0;  // since the recording began; in this order, without overlaps
  };
  int pid = 0;
  std::uint64_t program = 0;
  std::string process;
  std::uint32_t number = 0;
  std::string began;  // "": not known
  std::vector<Wait> waits;
};
// What a slow request (record --slower) was seen waiting for.
struct RequestWaits {
  int pid = 0;
  std::string request;  // its slow_label
  // From the first look that saw it there up to the last one: it may have waited before and behind that, too.
  std::vector<SuspendedTrack::Wait> waits;
};
// "coroutine 3: worker (a.lua:7)".
inline std::string title_of(const SuspendedTrack& track) {
  return "coroutine " + std::to_string(track.number) + (track.began.empty() ? "" : ": " + track.began);
}

}  // namespace luaspy
