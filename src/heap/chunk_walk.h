#pragma once
// The chunks of one piece of memory that glibc's malloc has divided, from the lowest to the highest
// (malloc/malloc.c, "Chunk details", struct malloc_chunk):
//
//   chunk ─▶ | prev_size | size, three flags | fd, or the program's bytes | bk … | next chunk
//
// Whether a chunk is in use is said by a flag of the next one (PREV_INUSE). Chunks in fastbins and
// in threads' caches have it set although they are free.

#include <vector>

#include "base/address_range.h"
#include "base/memory.h"

namespace luaspy {

namespace glibc {

inline constexpr std::uint64_t prev_in_use = 1, is_mmapped = 2, not_main = 4, flags = 7;
inline constexpr std::uint64_t header = 16, smallest = 32, alignment = 16;  // MINSIZE, MALLOC_ALIGNMENT

// Sizes of chunks that may hold a thread's cache (struct tcache_perthread_struct): of 2.26 to 2.29,
// 2.30 to 2.41, and from 2.42 on.
inline constexpr std::uint64_t cache_sizes[] = {0x250, 0x290, 0x300};

}  // namespace glibc

struct ChunkWalk {
  std::vector<AddressRange> free;      // ascending, the last one may be top
  std::vector<Address> perhaps_cache;  // chunks in use that have one of cache_sizes
  std::uint64_t chunks = 0;
  // Empty if the walk came to the end; else why not, for people.
  const char* why_not = nullptr;
};

// `first`: where the first chunk begins. `top`: where the last one does, which reaches to `end`; 0
// if the piece ends with the fenceposts of a full heap (malloc.c, sysmalloc). Reads each chunk's
// header.
ChunkWalk walk_chunks(const Memory& memory, Address first, Address top, Address end);

}  // namespace luaspy
