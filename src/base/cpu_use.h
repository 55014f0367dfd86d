#pragma once
// How much CPU time a target has used while it was recorded, as the kernel counts it, and how much of that
// luaspy has sampled: whatever luaspy does not see, this shows.

#include <cstdint>

namespace luaspy {

struct CpuUse {
  std::int64_t lua_ns = 0;      // processes that run Lua, with all of their threads, those that ended included
  std::int64_t other_ns = 0;    // processes without Lua that these have started
  std::int64_t unknown_ns = 0;  // processes that ended before luaspy has seen whether they run Lua
  double system_share = -1;     // of lua_ns: spent in the kernel, at most, 0 to 1; negative: not known
};

}  // namespace luaspy
