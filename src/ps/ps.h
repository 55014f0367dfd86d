#pragma once
// luaspy ps: the processes that run Lua.

#include "base/result.h"

namespace luaspy {

struct PsOptions {
  bool json = false;
  bool states = false;  // search the processes' memory for states
};

Result<int> ps(const PsOptions& options);

}  // namespace luaspy
