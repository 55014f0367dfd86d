#pragma once
// Copies the memory of a running process while it stands still.
//
//   plan    which pages may have Lua objects: all writable, resident ones, but for shared memory without
//           a Lua; memory for their copy is prepared
//   stop    all running threads; sleeping ones are left alone, and asked afterwards whether they ran
//   copy    by as many threads as there are CPUs: some 0.6 ms per MB and thread
//   resume
//
// In the stop, only pages are asked for that are new since the plan, and the stop has a limit.
//
// Of a process whose memory is mostly not Lua's, only the pages that have Lua objects are copied.
// They are found before, by following the objects while the process runs.

#include <chrono>
#include <memory>
#include <string>

#include "attach/core_file.h"
#include "base/result.h"
#include "heap/heap_snapshot.h"

namespace luaspy {

class Session;

struct SnapshotOptions {
  // Also which memory is resident, which takes some ms more for each GB; then all memory is copied.
  bool with_resident = false;
  // How long the process may stand still: enough for heaps of 1.5 GB. Then it is resumed, and an Error says so.
  std::chrono::nanoseconds max_still = std::chrono::seconds(1);
  const char* option = "";  // by which a user can raise that, in ms; "": none
};

// Tries a few times if sleeping threads wake meanwhile, or if the instant was a bad one (adds_up()).
// An Error if luaspy has not enough memory: then nothing was stopped. The snapshot's `code` asks
// `session`, which must live until it is closed.
Result<HeapSnapshot> take_snapshot(Session& session, const SnapshotOptions& options = {});

// The same of a core file. `path`: its name, for errors.
Result<HeapSnapshot> take_snapshot(const std::shared_ptr<const CoreFile>& core, const std::string& path);

}  // namespace luaspy
