#pragma once
// Whether luaspy may have the memory that a look at heaps takes.

#include <cstdint>

#include "base/result.h"
#include "heap/heap_snapshot.h"

namespace luaspy {

// An Error, of one line, if that is more than luaspy can have (system/available_memory.h). `bytes`:
// how much memory will be copied. `heaps`: of it, those that will be analysed.
Result<void> check_room(std::uint64_t bytes, std::uint64_t heaps);

// What the counters of these Luas say together.
std::uint64_t heap_bytes(const Memory& memory, const std::vector<HeapSnapshot::State>& states);

}  // namespace luaspy
