#pragma once
// What is said of Lua heaps, as text for people.

#include <string>

#include "profile/heap_track.h"

namespace luaspy {

// "+1.2 MiB/s", "0 B/s"
std::string growth_text(double bytes_per_second);
// "at least 3.0 cycles/s", "no cycle seen": what is counted is a lower bound (heap_track.h).
std::string cycles_text(double per_second);
// " in 3 states"; nothing for one
std::string in_states(std::size_t states);

// What a picture calls the heap of a state, of which there may be several: "Lua heap", "Lua heap 2".
// The heaps of each process are numbered.
std::string heap_name(const HeapTracks& heaps, std::size_t state);

// "12.3 MiB at the end, 8.1 MiB to 15.0 MiB, +1.2 MiB/s, at least 3.0 cycles/s" of all heaps
// together; "" if there are none. `until_ns`: the end of the recording.
std::string heap_text(const HeapTracks& heaps, std::int64_t until_ns);

}  // namespace luaspy
