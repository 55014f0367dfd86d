#pragma once
// Chooses a process if no pid was given: --pid auto, --name.

#include <optional>
#include <string>

#include "base/result.h"

namespace luaspy {

// The pid of the only process that runs Lua; with a `name`, of the process that has this name or
// contains it in its command line. An Error lists the candidates: no_lua or no_such_process if
// there are none, permission if luaspy may not look at any of them, usage if there are several.
// `subprocesses`: whether the command also looks at what its target has started, so that one that was started by
// another match is not a second one; nullopt: no option of the command makes it do so.
Result<int> choose_target(const std::string& name, std::optional<bool> subprocesses);

}  // namespace luaspy
