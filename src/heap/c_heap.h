#pragma once
// What glibc's malloc has: which parts of its memory are in use by the program, and which are free.
// Everything is read from outside; no symbol is needed.
//
// Three kinds of memory belong to it: the main arena ([heap], which sbrk(2) grows), the heaps of
// the arenas of other threads, and large chunks that are mapped alone. The first two are walked
// chunk by chunk (chunk_walk.h). Chunks in fastbins and in threads' caches are found by their lists
// (free_lists.h).

#include <string>
#include <vector>

#include "base/address_range.h"
#include "base/resident_memory.h"

namespace luaspy {

struct CHeap {
  // False: there is no glibc in the process, or its malloc was never called, as with jemalloc.
  bool found = false;
  std::size_t arenas = 0;
  // All lists are ascending and disjoint. Chunks count with their headers, and what malloc itself
  // keeps (malloc_state, caches) counts as in use.
  std::vector<AddressRange> areas;    // all of its memory
  std::vector<AddressRange> free;     // of areas: what malloc could give out
  std::vector<AddressRange> unknown;  // of areas: it could not be walked
  // Bytes, of `free`.
  std::uint64_t fastbin_bytes = 0, cached_bytes = 0;
  // Chunks mapped alone; their memory is in `areas`.
  std::uint64_t mapped_chunks = 0, mapped_bytes = 0;
  // What does not fit, a sentence each, for people. A program that runs changes its heap while it
  // is read, and one that was stopped may be within malloc. Then a second look helps.
  std::vector<std::string> doubts;

  std::uint64_t free_bytes() const { return total_bytes(free); }
  std::uint64_t bytes_in_use() const { return total_bytes(areas) - total_bytes(free) - total_bytes(unknown); }
};

// `taken`: memory that is known to be something else, ascending and disjoint. Takes some 0.5 s for
// each GB of small chunks.
CHeap read_c_heap(const Memory& memory, const ResidentMemory& resident, std::span<const AddressRange> taken);

}  // namespace luaspy
