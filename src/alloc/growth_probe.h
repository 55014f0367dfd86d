#pragma once
// How much a program allocates right now: its heap's counter is read twice, without any effect on the
// program, or almost: a read takes the counter's cache line away from the program's CPU, which has to wait
// for it at its next allocation. Read three times within a µs, it showed two thirds of what the program
// allocates; reads that are 2 µs apart show 80 to 95 %. Much more would be worse again: what the
// collector frees meanwhile is not seen to have been allocated.

#include <cstdint>
#include <optional>

#include "luastate/lua.h"

namespace luaspy {

struct Growth {
  std::int64_t heap = 0;  // bytes, at the end
  double grown = 0;       // bytes; 0: the heap became smaller
  double window_ns = 0;   // in so much time
};

// Takes some µs. nullopt: the counter cannot be read.
std::optional<Growth> look_at_growth(const Memory& memory, const Lua& lua, Address G);

}  // namespace luaspy
