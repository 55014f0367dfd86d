#pragma once
// Which process is meant where no pid was given: --pid auto, --name.

#include "cli/options.h"

namespace luaspy {

// The pid; options.pid as it is if it is set. An Error lists what could be meant:
// no_lua or no_such_process if nothing is, permission if only what luaspy may not look at, usage if several are.
Result<int> choose_target(const TargetOptions& options);

}  // namespace luaspy
