#pragma once
// GCproto (lj_obj.h): one object, in which bytecode, constants and debug information follow the
// fields.

#include <span>

#include "luastate/prototype.h"

namespace luaspy {

// The GCproto at `address` as a Prototype. Instruction 0 is the function's header (BC_FUNCF,
// BC_FUNCV). LuaJIT's own functions in bytecode (lj_lib.c) have the source "=[builtin:name]", as in
// lj_debug.c.
std::optional<Prototype> read_luajit_prototype(const Memory& memory, const LuajitLayout& layout, Address address);

std::optional<FunctionPlace> read_place(const Memory& memory, const LuajitLayout& layout, Address address);

// A number computed from the fields of a GCproto that do not change while it lives. `proto` has its
// layout.pt_size bytes. 0 if they are not a GCproto.
std::uint64_t mark_of(const LuajitLayout& layout, std::span<const std::byte> proto);

}  // namespace luaspy
