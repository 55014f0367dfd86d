#pragma once
// The report of luaspy heap as text.

#include <string>
#include <string_view>

#include "base/paint.h"
#include "heap/heap_analysis.h"
#include "heap/heap_diff.h"
#include "heap/heap_snapshot.h"
#include "heap/resident.h"

namespace luaspy {

std::string process_text(const HeapSnapshot& snapshot);  // which process it is of: a line
std::string head_text(const HeapSnapshot& snapshot);
// What is said of a file that has been written: what to do with it, and what its making has cost the process.
std::string written_text(const HeapSnapshot& snapshot, std::string_view path, std::string_view next_step);
// One state. `lines`: of each table.
std::string to_text(const HeapAnalysis& analysis, int lines, const Paint& paint);
// What has grown in one state. `after`: the later one. `seconds`: between them.
std::string to_text(const HeapDiff& diff, const HeapAnalysis& after, double seconds, int lines, const Paint& paint);

// A line each, the biggest part first; parts of no bytes are left out.
std::string to_text(const ResidentReport& report, const Paint& paint);

}  // namespace luaspy
