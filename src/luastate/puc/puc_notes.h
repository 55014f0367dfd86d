#pragma once
// What a look has learned about a PUC state, in addition to its calls.

#include "luastate/puc/puc_lua.h"
#include "luastate/running.h"

namespace luaspy {

struct PucNotes : StateNotes {
  Address errorJmp = 0;  // the lua_longjmp of the innermost protected call, on the native stack
};

// Of a state of PUC.
inline const Layout& puc_layout_of(const ActiveState& state) { return static_cast<const PucLua&>(*state.lua).layout(); }

}  // namespace luaspy
