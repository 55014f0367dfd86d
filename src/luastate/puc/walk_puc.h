#pragma once
// Walks the CallInfo chain of a PUC lua_State: the Lua and C functions that are active in it.
//
//   lua_State ──ci──▶ CallInfo ──previous──▶ CallInfo ──previous──▶ … ──▶ base_ci (the host; not a function)
//                        │ func                 5.1: the same as an array, base_ci … ci
//                        ▼
//   stack:  … │ function │ arguments, locals … │ function │ …
//               └▶ LClosure ──▶ Proto ──▶ code ◀── savedpc

#include <span>

#include "luastate/known_functions.h"
#include "luastate/puc/layout.h"
#include "luastate/walk.h"

namespace luaspy {

// A number made of the fields of a Proto that stay as they are while it lives. `proto` are its
// layout.p_size bytes. 0 if they are no Proto.
std::uint64_t mark_of(const Layout& layout, std::span<const std::byte> proto);

// In the stop: touches what a walk will need of the state, its CallInfos and its stack, which
// change when the thread runs on; and the functions that are not `known`, which a collection may
// free as soon as they have returned.
void touch_puc(const Memory& stopped, const Layout& layout, Address L, const WalkLimits& limits,
               const KnownFunctions& known);

// Reads whatever it needs; never more than the limits allow. `stopped` has what touch_puc()
// touched; closures, Protos and their code are asked of `objects`, which has these, and may read
// the rest after the stop. `walk` is reused: its vector keeps its room.
void walk_puc(const Memory& stopped, const Memory& objects, const Layout& layout, Address L, const WalkLimits& limits,
              LuaWalk& walk);

// The function in a slot of the stack of `L`, called or not. False if there is none.
bool read_function_at(const Memory& memory, const Layout& layout, Address L, Address slot, LuaCall& call);

}  // namespace luaspy
