#pragma once
// Walks the frames of a LuaJIT lua_State.
//
//   Lua stack (64-bit references):  … │ function │ link │ slots of the function … │ function │ link │ slots …
//                                                │                                         ▲ frame    ▲ base
//   link: the caller's next instruction (a Lua function called), or the distance to the frame outside and a type
//   (lj_frame.h).
//
//   C stack:  lua_State ──cframe──▶ C frame of the VM ──previous──▶ C frame ──previous──▶ … ──▶ 0
//   A frame of type C or CP, or an FFI callback's, is the outermost one in its C frame.

#include <optional>
#include <span>
#include <vector>

#include "luastate/luajit/luajit_layout.h"
#include "luastate/walk.h"

namespace luaspy {

// A frame that machine code has not written to the Lua stack: a function inlined into a trace.
struct InlinedFrame {
  Address frame = 0;       // where it would be
  std::uint64_t link = 0;  // 0: the one on the stack; a tail call has replaced the function only
  Address function = 0;    // GCfunc; 0: not known, and proto is
  Address proto = 0;
  Address continuation_pc = 0;  // of a frame of type CONT
};

// Where a walk begins.
struct LuajitTop {
  Address base = 0;                       // of the innermost frame
  Address pc = 0;                         // its next instruction, if it is a Lua function; 0: not known
  std::span<const InlinedFrame> inlined;  // innermost first
  std::uint64_t left_by = 0;  // the link that its function is returning by: the call is over, its slots may be
                              // overwritten; 0: it runs
};

// The C frames of the VM that belong to `L`, innermost first, as far as they lie on the C stack
// from `low` to `high`.
void read_cframes(const Memory& memory, const LuajitLayout& layout, Address L, Address low, Address high,
                  std::vector<Address>& cframes);

// Reads through `memory` whatever it needs; never more than the limits allow. `cframes` as
// read_cframes() gives them. `walk` is reused.
void walk_luajit(const Memory& memory, const LuajitLayout& layout, Address L, std::span<const Address> cframes,
                 const LuajitTop& top, const WalkLimits& limits, LuaWalk& walk);

// Could a frame of `L` have its base there, executing `pc` or, with 0, anything? It holds a
// function, and if that is a Lua function, `pc` is in its bytecode.
bool is_base(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc);

// Where the interpreter is in `L`, if it is that which was stopped: BASE and PC are its registers
// (rdx and rbx, vm_x64.dasc), saved_pc is SAVE_PC of its C frame. Base 0: they do not say.
// `entering` keeps a frame that is not written yet.
LuajitTop interpreter_top(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc,
                          Address saved_pc, std::vector<InlinedFrame>& entering);

// The Lua stack while lj_state.c, resizestack moves it: first it is freed where it was, then
// L->stack is set, and at last L->base.
struct MovedStack {
  Address stack = 0, base = 0;  // where they will be; 0: it is not being moved, or nobody knows where
};

// It stands where L says: nothing of that is being changed.
bool stack_stands(const Memory& memory, const LuajitLayout& layout, Address L);

// `words`: registers and the C stack's innermost words. One of them says where it goes.
MovedStack find_moved_stack(const Memory& memory, const LuajitLayout& layout, Address L,
                            std::span<const Address> words);

// Memory in which `L` has its stack there.
class WithMovedStack : public Memory {
 public:
  WithMovedStack(const Memory& memory, const LuajitLayout& layout, Address L, const MovedStack& moved)
      : memory_(memory), layout_(layout), L_(L), moved_(moved) {}
  bool read(Address address, std::span<std::byte> into) const override;
  void touch(Address address, std::size_t size) const override { memory_.touch(address, size); }

 private:
  const Memory& memory_;
  const LuajitLayout& layout_;
  Address L_;
  MovedStack moved_;
};

// The function in a slot of the stack of `L`, called or not: GC64 keeps it in the slot below the
// base, else in the frame's slot. False if there is none.
bool read_function_at(const Memory& memory, const LuajitLayout& layout, Address L, Address slot, LuaCall& call);

// Fills what a LuaCall says of its GCproto, of which `call` has the address. False if there is
// none.
bool read_proto_of(const Memory& memory, const LuajitLayout& layout, LuaCall& call);

// The GCproto that the instruction at `pc` belongs to; 0 if there is none: its first instruction is
// the only function header in it.
Address proto_of(const Memory& memory, const LuajitLayout& layout, Address pc);

}  // namespace luaspy
