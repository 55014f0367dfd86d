#pragma once
// Walks the frames of a LuaJIT lua_State.
//
//   Lua stack (64-bit references):  … │ function │ link │ slots of the function … │ function │ link │ slots …
//                                                │                                         ▲ frame    ▲ base
//   link: the caller's next instruction (a Lua function called), or the distance to the frame outside and a type (lj_frame.h).
//
//   C stack:  lua_State ──cframe──▶ C frame of the VM ──previous──▶ C frame ──previous──▶ … ──▶ 0
//   A frame of type C or CP, or an FFI callback's, is the outermost one in its C frame.

#include <optional>
#include <span>

#include "luastate/luajit_layout.h"
#include "luastate/walk.h"

namespace luaspy {

// A frame that machine code has not written to the Lua stack: a function inlined into a trace.
struct InlinedFrame {
  Address frame = 0;           // where it would be
  std::uint64_t link = 0;      // 0: the one on the stack; a tail call has replaced the function only
  Address function = 0;        // GCfunc; 0: not known, and proto is
  Address proto = 0;
  Address continuation_pc = 0; // of a frame of type CONT
};

// Where a walk begins.
struct LuajitTop {
  Address base = 0;            // of the innermost frame
  Address pc = 0;              // its next instruction, if it is a Lua function; 0: not known
  std::span<const InlinedFrame> inlined;   // innermost first
  std::uint64_t left_by = 0;   // the link that its function is returning by: the call is over, its slots may be overwritten; 0: it runs
};

// The C frames of the VM that belong to `L`, innermost first, as far as they lie on the C stack from `low` to `high`.
void read_cframes(const Memory& memory, const LuajitLayout& layout, Address L, Address low, Address high, std::vector<Address>& cframes);

// Reads through `memory` whatever it needs; never more than the limits allow. `cframes` as read_cframes() gives them. `walk` is reused.
void walk_luajit(const Memory& memory, const LuajitLayout& layout, Address L, std::span<const Address> cframes, const LuajitTop& top, const WalkLimits& limits,
                 LuaWalk& walk);

// Could a frame of `L` have its base there, executing `pc` or, with 0, anything? It holds a function, and if that is a Lua function,
// `pc` is in its bytecode.
bool is_base(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc);

// The base of the frame that is returned to by `link` from the one at `base`; 0 if there is none.
Address base_outside(const Memory& memory, const LuajitLayout& layout, Address base, std::uint64_t link);

// The link that the function with `base` returns by, if `pc`, the VM's PC, is that: until its caller goes on, PC is the link. Else 0.
std::uint64_t link_of_return(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc);

// While lj_state.c, resizestack moves the stack, L->base is where it was before, and how far it moves is in a register. What L->base will
// be; 0 if none of the registers tells.
Address moved_base(const Memory& memory, const LuajitLayout& layout, Address L, std::span<const Address> registers);

// Fills what a LuaCall says of its GCproto, of which `call` has the address. False if there is none.
bool read_proto_of(const Memory& memory, const LuajitLayout& layout, LuaCall& call);

// The GCproto that the instruction at `pc` belongs to; 0 if there is none: its first instruction is the only function header in it.
Address proto_of(const Memory& memory, const LuajitLayout& layout, Address pc);

}  // namespace luaspy
