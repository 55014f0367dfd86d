#pragma once
// What dump shows for a core file: the same looks as at a live process (inspection.h), made by the
// same readers.

#include "attach/core_file.h"
#include "dump/inspection.h"

namespace luaspy {

struct CoreLookOptions {
  InspectOptions inspect;
  MergeOptions merging;
  WalkLimits limits;
};

// Fails if the file has no Lua that can be read, unless `merging` asks for native frames only.
Result<ProcessLook> look_at(const CoreFile& core, const std::string& path, const CoreLookOptions& options);

}  // namespace luaspy
