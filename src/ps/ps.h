#pragma once
// luaspy ps: the processes that run Lua.

#include "cli/options.h"

namespace luaspy {

Result<int> ps(const PsOptions& options);

}  // namespace luaspy
