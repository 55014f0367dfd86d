#pragma once
// Which process is meant where no pid was given: --pid auto, --name.

#include <string>

#include "base/result.h"

namespace luaspy {

// The pid of the only process that runs Lua; with a `name`, of the one that is called so or has it
// in its command. An Error lists what could be meant: no_lua or no_such_process if nothing is,
// permission if only what luaspy may not look at, usage if several are.
Result<int> choose_target(const std::string& name);

}  // namespace luaspy
