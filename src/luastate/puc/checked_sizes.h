#pragma once
// The sizes of numbers that a core of 5.3 or later was compiled with, from its machine code: luaL_checkversion_
// compares its argument with LUAL_NUMSIZES, sizeof(lua_Integer) * 16 + sizeof(lua_Number) (lauxlib.h), and
// mentions a text that no other function does. In the folder of each processor.

#include <cstddef>
#include <optional>

#include "base/memory.h"

namespace luaspy {

struct CheckedSizes {
  std::size_t integer = 0, number = 0;  // bytes
};

// `near`: a function of lauxlib.c, such as the allocation function of luaL_newstate; the code around it is
// searched, 32 KB of it. nullopt: not found, or not the same everywhere.
std::optional<CheckedSizes> find_checked_sizes(const Memory& memory, Address near);

}  // namespace luaspy
