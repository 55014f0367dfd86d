#pragma once
// Memory that a heap could do without: copies of one text, tables with much more room than entries,
// coroutines that only the registry keeps.

#include <string>
#include <vector>

#include "heap/heap_analysis.h"

namespace luaspy {

// Live strings with the same text. Only long ones: Lua keeps one of each short string (lstring.h,
// LUAI_MAXSHORTLEN), and LuaJIT of each string.
struct DuplicateText {
  Node example = no_node;
  std::int64_t count = 0;
  std::uint64_t bytes = 0;  // of all but one
};
// Those that waste the most first; at most `most`. `all`, if set: the sum over all of them.
std::vector<DuplicateText> duplicate_texts(const HeapAnalysis& analysis, std::size_t most, Total* all = nullptr);

// A live table of which less than a quarter is in use. Tables grow by doubling, and never shrink
// before something is added (ltable.c, rehash).
struct RoomyTable {
  Node node = no_node;
  std::uint64_t slots = 0, entries = 0;
  std::uint64_t bytes = 0;  // of the slots that are not in use
};
// Those that waste at least 4 KiB, the most first; at most `most`.
std::vector<RoomyTable> roomy_tables(const HeapAnalysis& analysis, std::size_t most, Total* all = nullptr);

// Suspended coroutines that can be reached through the registry only, and not through globals,
// modules or calls. A host may resume them (nginx does), Lua code cannot.
std::vector<Node> coroutines_of_registry(const HeapAnalysis& analysis);

}  // namespace luaspy
