#pragma once
// luaspy ps: the processes that run Lua.

#include "options.h"

namespace luaspy {

Result<int> ps(const PsOptions& options);

}  // namespace luaspy
