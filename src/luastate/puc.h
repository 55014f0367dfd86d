#pragma once
// Walks the CallInfo chain of a PUC lua_State: the Lua and C functions that are active in it.
//
//   lua_State ──ci──▶ CallInfo ──previous──▶ CallInfo ──previous──▶ … ──▶ base_ci (the host; not a function)
//                        │ func                 5.1: the same as an array, base_ci … ci
//                        ▼
//   stack:  … │ function │ arguments, locals … │ function │ …
//               └▶ LClosure ──▶ Proto ──▶ code ◀── savedpc

#include <span>

#include "luastate/layout.h"
#include "luastate/walk.h"

namespace luaspy {

// A number made of the fields of a Proto that stay as they are while it lives. `proto` are its layout.p_size bytes. 0 if
// they are no Proto.
std::uint64_t mark_of(const Layout& layout, std::span<const std::byte> proto);

// Reads through `memory` whatever it needs; never more than the limits allow. `walk` is reused: its vector keeps its room.
void walk_puc(const Memory& memory, const Layout& layout, Address L, const WalkLimits& limits, LuaWalk& walk);

}  // namespace luaspy
