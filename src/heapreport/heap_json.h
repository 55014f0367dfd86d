#pragma once
// What luaspy heap says, as JSON (docs/heap.md).

#include <memory>
#include <string>
#include <vector>

namespace luaspy {

class HeapAnalysis;
struct HeapDiff;
struct HeapSnapshot;
struct ResidentReport;

using Analyses = std::vector<std::unique_ptr<HeapAnalysis>>;

// One object, with a line break behind it. `lines`: of each list. `resident`: where the resident
// memory is; nullptr: not asked.
std::string to_json(const HeapSnapshot& snapshot, const Analyses& states, int lines,
                    const ResidentReport* resident = nullptr);
// What has grown in one state of the process `pid`. `seconds`: between the two snapshots.
std::string to_json(const HeapDiff& diff, const HeapAnalysis& after, int pid, double seconds, int lines);

}  // namespace luaspy
