#pragma once
// What dump prints for programs. docs/dump.schema.json is its schema; its version changes when a
// field changes its meaning or is removed.

#include <string>

#include "dump/movement.h"

namespace luaspy {

// One or more looks at each process, in the order of time; the target comes first, then its
// subprocesses.
std::string to_json(const std::vector<std::vector<ProcessLook>>& processes, bool with_coroutines);

}  // namespace luaspy
