#pragma once
// The rows of layouts/.

#include <span>

#include "luastate/puc/layout.h"

namespace luaspy {

// All rows: those of builds as Lua ships, oldest release first, and then the same with long double.
std::span<const Layout> layouts();

}  // namespace luaspy
