#pragma once
// What a flight recorder has kept becomes files: an ordinary raw recording of each program of each process.

#include <optional>
#include <string>
#include <vector>

#include "agent/flight_recorder.h"
#include "base/result.h"

namespace luaspy {

struct SnapshotFolder {
  std::string folder;
  std::size_t most_files = 100;  // in that folder; no more are written then, and none is removed
};

// `pid` 0: of all. Returns the paths of the files, which are new, and readable by their user alone. An Error: nothing
// is kept of the process, the folder has most_files, or not all could be written.
Result<std::vector<std::string>> write_snapshot(const KeptParts& parts, int pid, const SnapshotFolder& options);

}  // namespace luaspy
