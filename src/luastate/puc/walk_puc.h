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
#include "luastate/proto_list.h"
#include "luastate/puc/layout.h"
#include "luastate/walk.h"

namespace luaspy {

// A number computed from the fields of a Proto that do not change while it lives. `proto` has its
// layout.p_size bytes. 0 if they are not a Proto.
std::uint64_t mark_of(const Layout& layout, std::span<const std::byte> proto);

// In the stop: touches what a walk will need. That is the state, its CallInfos and its stack, which
// change when the thread runs on; and the functions that are not `known`, which a collection may
// free as soon as they have returned. Adds the Protos of the latter to `protos`, innermost first.
void prefetch_puc(const Memory& stopped, const Layout& layout, Address L, const WalkLimits& limits,
                  const KnownFunctions& known, ProtoList& protos);

// Reads what it needs, within the limits. `stopped` has what prefetch_puc() touched; closures, Protos
// and their code are read from `objects`, which has these and may read the rest after the stop.
// `walk` is reused: its vector keeps its memory.
void walk_puc(const Memory& stopped, const Memory& objects, const Layout& layout, Address L, const WalkLimits& limits,
              LuaWalk& walk);

// The function in a stack slot of `L`, called or not. False if there is none.
bool read_function_at(const Memory& memory, const Layout& layout, Address L, Address slot, LuaCall& call);

}  // namespace luaspy
