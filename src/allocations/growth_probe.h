#pragma once
// How much a program allocates right now: its heap's counter is read some times, without any effect on the
// program, or almost: a read takes the counter's cache line away from the program's CPU, which has to wait
// for it at its next allocation. Reads that follow each other at once show two thirds of what is allocated,
// but of all places alike, and right before a burst begins. Reads that are 2 µs apart show 80 to 95 %, but
// not what a collector frees meanwhile, which it does more often where more is allocated. So the first
// tell where to trap, and the others how much it is in total.

#include <cstdint>
#include <optional>

#include "base/memory.h"

namespace luaspy {

class Lua;

struct Growth {
  struct Seen {
    double bytes = 0;      // 0: the heap became smaller
    double window_ns = 1;  // in so much time
    // What it would be in `ns`.
    double in(double ns) const { return bytes * ns / window_ns; }
  };
  Seen at_once, apart;
  std::int64_t heap = 0;  // bytes, at the end
};

// Takes some µs. nullopt: the counter cannot be read.
std::optional<Growth> look_at_growth(const Memory& memory, const Lua& lua, Address G);

}  // namespace luaspy
