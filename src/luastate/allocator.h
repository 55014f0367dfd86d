#pragma once
// The memory of a Lua that has an allocator of its own: LuaJIT's, unless the program gave it
// another one.

#include <vector>

#include "base/address_range.h"

namespace luaspy {

struct AllocatorMemory {
  // All lists are ascending and disjoint. Chunks count with their headers.
  std::vector<AddressRange> segments;  // what it has got from the kernel and divides
  std::vector<AddressRange> free;      // of segments: what it could give out
  // False: a segment could not be walked to its end, and so `free` is not known. The program may be
  // just allocating.
  bool whole = true;

  std::uint64_t free_bytes() const { return total_bytes(free); }
  std::uint64_t bytes_in_use() const { return total_bytes(segments) - total_bytes(free); }
};

// What belongs to all states of one Lua in a process, as nothing says to which. Both are ascending
// and disjoint.
struct SharedLuaMemory {
  // Large chunks that allocators have mapped alone: all in use.
  std::vector<AddressRange> mapped_chunks;
  // Areas of machine code that the JIT compiler has made.
  std::vector<AddressRange> machine_code;
};

}  // namespace luaspy
