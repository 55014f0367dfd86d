#pragma once
// Small copied heaps, one of each Lua: the .luaheap files of corpus/objects. Everything that can be
// asked of a heap, asked.

#include <string>
#include <vector>

#include "heap/heap_snapshot.h"
#include "heapreport/heap_json.h"
#include "support/fake_memory.h"

namespace luaspy::fuzz {

struct CopiedHeap {
  HeapSnapshot snapshot;  // as it was copied
  Analyses analyses;      // of that
  Image image;            // its memory, to be changed
};
const std::vector<CopiedHeap>& copied_heaps();

// One analysis for each state. `memory`: of the snapshot, or what takes its place; it must outlive the
// result.
Analyses analyse(const HeapSnapshot& snapshot, const Memory& memory);

// What to ask: each of these is a bit.
enum Question : unsigned {
  report = 1,
  json = 2,
  objects_and_classes = 4,
  profile = 8,
  lines = 16,
  chrome = 32,
  growth = 64
};
constexpr unsigned everything = 127;
// Asks, and expects harmless and valid answers. `before`: of an earlier snapshot, for growth.
void ask(unsigned questions, const HeapSnapshot& snapshot, const Analyses& analyses, const Analyses& before);

// Copies a .luaheap file without what ask() does not need. Returns an exit status.
int shrink_heap(const char* from, const char* to);

}  // namespace luaspy::fuzz
