#pragma once
// The arenas of glibc's malloc, found in the memory of a process without symbols. Sources:
// malloc/malloc.c (struct malloc_state, struct malloc_par) and malloc/arena.c (heap_info) of glibc
// 2.36, 2.41 and 2.43.
//
//   .data of libc.so.6, or of a static program:
//     main_arena: … top | last_remainder | bins[254] | binmap | next | next_free | attached | system_mem
//     mp_: … n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold | mmapped_mem | max_mmapped_mem | sbrk_base
//
// An empty bin refers to itself: its fd and bk are 16 bytes below it. That is what is searched for.

#include <optional>
#include <vector>

#include "base/memory.h"
#include "base/resident_memory.h"

namespace luaspy {

struct GlibcArena {
  Address address = 0;   // of its malloc_state
  Address top = 0;       // the chunk above all others; 0: it has no memory yet
  Address fastbins = 0;  // ten words; 0: from 2.43 on there are none
  Address first = 0;     // where the chunks begin in the memory after its malloc_state, if it is not the main one
};

struct GlibcMalloc {
  std::vector<GlibcArena> arenas;  // the main one first
  // From mp_; not known if that was not found.
  Address sbrk_base = 0;  // where the main arena's memory begins; 0: not known
  bool has_counts = false;
  std::uint64_t mmapped_chunks = 0, mmapped_bytes = 0;
};

// nullopt: no glibc, or its malloc was never called. The main thread's arena has to look as it does
// between two calls of malloc, except for two bins.
std::optional<GlibcMalloc> find_glibc_malloc(const Memory& memory, const ResidentMemory& resident);

}  // namespace luaspy
