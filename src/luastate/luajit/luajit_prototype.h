#pragma once
// GCproto (lj_obj.h): one object, in which bytecode, constants and debug information follow the
// fields.

#include <span>

#include "luastate/prototype.h"

namespace luaspy {

// The GCproto at `address` as a Prototype. Instruction 0 is the function's header (BC_FUNCF,
// BC_FUNCV). Functions that LuaJIT itself has as bytecode (lj_lib.c) have the source
// "=[builtin:name]", as lj_debug.c says.
std::optional<Prototype> read_luajit_prototype(const Memory& memory, const LuajitLayout& layout, Address address);

std::optional<FunctionPlace> read_place(const Memory& memory, const LuajitLayout& layout, Address address);

// A number made of the fields of a GCproto that stay as they are while it lives. `proto` are its
// layout.pt_size bytes. 0 if they are no GCproto.
std::uint64_t mark_of(const LuajitLayout& layout, std::span<const std::byte> proto);

}  // namespace luaspy
