#pragma once
// GCproto (lj_obj.h): one object, in which bytecode, constants and debug information follow the
// fields. In a Prototype of LuaJIT, instruction 0 is the function's header (BC_FUNCF, BC_FUNCV).
// LuaJIT's own functions in bytecode (lj_lib.c) have the source "=[builtin:name]", as in
// lj_debug.c.

#include <span>

#include "luastate/luajit/luajit_layout.h"

namespace luaspy {

// A number computed from the fields of a GCproto that do not change while it lives. `proto` has its
// layout.pt_size bytes. 0 if they are not a GCproto.
std::uint64_t mark_of(const LuajitLayout& layout, std::span<const std::byte> proto);

}  // namespace luaspy
