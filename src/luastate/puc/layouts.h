#pragma once
// Where each release of PUC Lua keeps its fields. offsetof() over the sources of 5.1.5, 5.2.4, 5.3.6,
// 5.4.4, 5.4.9 and 5.5.1; the others from their tags in lua/lua (lstate.h, lobject.h). 5.5.0 has the same structs as
// 5.5.1, except for udata_uv, which is 40 in betas (luaconf.h, LUAI_MAXALIGN).

#include <span>

#include "luastate/puc/layout.h"

namespace luaspy {

// All layouts: those of builds as Lua ships, oldest release first, and then the same with long double.
std::span<const Layout> layouts();

}  // namespace luaspy
