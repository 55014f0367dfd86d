#pragma once
// Free chunks that the flags of chunks do not show: those in an arena's fastbins, and in the caches
// of threads. Source: malloc/malloc.c (fastbins, struct tcache_perthread_struct, PROTECT_PTR).

#include <vector>

#include "base/address_range.h"
#include "base/memory.h"

namespace luaspy {

struct FreeList {
  std::vector<AddressRange> chunks;
  bool whole = true;  // false: a list did not end, or led to what is no chunk
};

// The ten lists of an arena (GlibcArena::fastbins). `areas`: all memory of malloc, ascending and
// disjoint. `most`: chunks that are followed.
FreeList fastbin_chunks(const Memory& memory, Address fastbins, std::span<const AddressRange> areas, std::size_t most);

// Adds what the thread's cache in this chunk has. False, and nothing is added, if the chunk is no
// such cache, or if the cache is empty. `budget`: chunks that may still be followed, also in vain.
bool cached_chunks(const Memory& memory, Address chunk, std::span<const AddressRange> areas, std::size_t& budget,
                   std::vector<AddressRange>& chunks);

}  // namespace luaspy
