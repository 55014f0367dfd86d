#pragma once
// LuaJIT's functions: GCfunc and GCproto (lj_obj.h). Everything may be read while the target runs:
// anything inconsistent counts as nothing.

#include <optional>
#include <span>

#include "base/memory.h"
#include "luastate/luajit/luajit_layout.h"
#include "luastate/walk.h"

namespace luaspy {

// One GCfunc.
struct LuajitFunction {
  Address proto = 0;  // Lua: its GCproto
  Address key = 0;    // identifies it in package.loaded (LuaCall.key); Lua: its bytecode
  Address env = 0;    // GCtab
};
std::optional<LuajitFunction> read_function(const Memory& memory, const LuajitLayout& layout, Address G,
                                            Address function);

// What identifies a C function with these fields: the bytecode made only for it (lj_lib.c,
// lj_lib_register), or else `f`.
Address c_function_key(const LuajitLayout& layout, Address G, Address pc, Address f);

// A number computed from the fields of a GCproto that do not change while it lives. `proto` has its
// layout.pt_size bytes. 0 if they are not a GCproto.
std::uint64_t mark_of(const LuajitLayout& layout, std::span<const std::byte> proto);

// Fills the fields of a LuaCall that describe its GCproto; `call` has its address. False if there
// is no GCproto.
bool read_proto_of(const Memory& memory, const LuajitLayout& layout, LuaCall& call);

// The GCproto of the instruction at `pc`; 0 if there is none. Its first instruction is the only
// function header in it.
Address proto_of(const Memory& memory, const LuajitLayout& layout, Address pc);

}  // namespace luaspy
