#pragma once
// What dump prints for programs. README.md tells the schema ("dump --json"); its version changes when a field changes its meaning or goes.

#include <string>

#include "movement.h"

namespace luaspy {

// `looks`: of one process, one or more, in the order of time. The first ones of `families` are the target's, then come those of its subprocesses.
std::string to_json(const std::vector<std::vector<ProcessLook>>& families);

}  // namespace luaspy
