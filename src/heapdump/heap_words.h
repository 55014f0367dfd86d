#pragma once
// Sizes, counts, classes and what is found, as people read them.

#include <string>
#include <string_view>

#include "heap/heap_analysis.h"
#include "heap/heap_diff.h"
#include "heap/heap_snapshot.h"
#include "heap/object_names.h"
#include "heap/suspects.h"

namespace luaspy {

std::string size_text(std::uint64_t bytes);                      // "1.2 MiB"
std::string change_text(std::int64_t bytes);                     // "+1.2 MiB"
std::string count_text(std::int64_t count);                      // "48,000"
std::string count_change_text(std::int64_t count);               // "+48,000"
std::string counted(std::int64_t count, std::string_view word);  // "48,000 tables"
std::string part_text(double part);                              // "62 %"
// "48,000 tables {body, id, when}", "3 coroutines of function (a.lua:3)".
std::string objects_text(const ObjectClass& its, std::int64_t count);
// "{body, id, when} (table)": the class with its type, unless its name says that.
std::string class_text(std::string_view name, ObjectType type);

// "10.0 MiB in 111,893 live objects, … for Lua itself"
std::string totals_text(const HeapAnalysis& analysis);
// "Lua's own counter says 10.8 MiB: the objects found make +0 bytes (+0.0000 %)"
std::string counter_text(const HeapAnalysis& analysis);
// "stood still for 21.8 ms, in which 22.2 MiB were copied", "was not stopped: none of its threads ran"; "" of a core
// file.
std::string standstill_text(const HeapSnapshot& snapshot);
// What may be wrong: a sentence, or "".
std::string doubt_text(const HeapSnapshot& snapshot);
// Of HeapSnapshot::unknown_bytes; empty if that is 0.
std::string unknown_memory_text(std::uint64_t bytes);
std::string doubt_text(const HeapAnalysis& analysis);
// "88 % (8.9 MiB) is held by cache: 100,000 tables {body, id, when}". `names`: of `analysis`.
std::string suspect_text(const HeapAnalysis& analysis, ObjectNames& names, const Suspect& suspect);
// "sessions got +2,351 app.Session (table): +417.3 KiB". `names`: of `after`.
std::string growth_text(const HeapAnalysis& after, ObjectNames& names, const HeapDiff::Growth& growth);
// Who holds what has grown: a path, "several objects", or "sessions[…] (20,001)".
std::string holder_text(ObjectNames& names, const HeapDiff::Growth& growth);
// "sessions[…].log (20,001)": so many objects whose paths differ in one key (heap/key_groups.h).
std::string group_text(ObjectNames& names, Node table, std::string_view after, std::int64_t objects);
// "cache.entries = {1, 2} at 0x55…": an object as --object takes it.
std::string object_text(const HeapAnalysis& analysis, ObjectNames& names, Node node);

}  // namespace luaspy
