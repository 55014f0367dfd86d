#pragma once
// Finds out the types of the numbers of a state.

#include "luastate/puc/puc_lua.h"

namespace luaspy {

// What the values of a state show: math.pi, math.huge and math.maxinteger, as long as they are in
// package.loaded.math and are what they were; in 5.2 and 5.3 also the number that G->version points at. Where
// these are missing, from 5.3 on the sizes that luaL_checkversion_ compares (checked_sizes.h). Reads three tables,
// of at most 2^16 slots each, and 32 KB of code.
NumberTypes find_number_types(const Memory& memory, const PucLua& lua, Address G);

}  // namespace luaspy
