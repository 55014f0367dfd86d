#pragma once
// Walks the frames of a LuaJIT lua_State.
//
//   Lua stack (64-bit references):
//     … │ function │ link │ slots of the function … │ function │ link │ slots …
//                                                                ▲ frame
//                                                                       ▲ base
//   link: the caller's next instruction (if it called a Lua function), or the distance to the frame
//   outside and a type (lj_frame.h).
//
//   C stack:  lua_State ──cframe──▶ C frame of the VM ──previous──▶ C frame ──previous──▶ … ──▶ 0
//   A frame of type C or CP, or of an FFI callback, is the outermost one in its C frame.

#include <span>
#include <vector>

#include "luastate/luajit/luajit_layout.h"
#include "luastate/luajit/luajit_top.h"
#include "luastate/walk.h"

namespace luaspy {

// The C frames of the VM that belong to `L`, innermost first, as far as they are on the C stack
// from `low` to `high`.
void read_cframes(const Memory& memory, const LuajitLayout& layout, Address L, Address low, Address high,
                  std::vector<Address>& cframes);

// The Lua stack of `L`, which is read through `memory`.
struct LuajitStack {
  const Memory& memory;
  const LuajitLayout& layout;
  Address L;
};

// Reads what it needs, within the limits. `cframes` as from read_cframes(). `walk` is reused.
void walk_luajit(const LuajitStack& stack, std::span<const Address> cframes, const LuajitTop& top,
                 const WalkLimits& limits, LuaWalk& walk);

// Could a frame of `L` have its base there, execute `pc` (0: anything) and return by `link` (0: by
// any)? It must hold a function, and if that is a Lua function, `pc` must be in its bytecode.
bool is_base(const Memory& memory, const LuajitLayout& layout, Address L, Address base, Address pc,
             std::uint64_t link = 0);

// Where the interpreter is in `L`, if the thread was stopped in the interpreter. BASE and PC are
// its registers (Machine::Luajit); saved_pc is SAVE_PC of its C frame. Base 0: they do not
// show it. `entering` receives a frame that is not written yet.
LuajitTop interpreter_top(const LuajitStack& stack, Address base, Address pc, Address saved_pc,
                          std::vector<InlinedFrame>& entering);

// The Lua stack while lj_state.c, resizestack moves it: first the old block is freed, then L->stack
// is set, and finally L->base.
struct MovedStack {
  Address stack = 0, base = 0;  // the new places; 0: it is not being moved, or they are not known
};

// The stack is where L says, and nothing of that is being changed.
bool stack_stands(const Memory& memory, const LuajitLayout& layout, Address L);

// `words`: registers and the innermost words of the C stack. One of them shows where the stack
// goes.
MovedStack find_moved_stack(const Memory& memory, const LuajitLayout& layout, Address L,
                            std::span<const Address> words);

// Memory as it is when `L` has its stack at the new place.
class WithMovedStack : public Memory {
 public:
  WithMovedStack(const Memory& memory, const LuajitLayout& layout, Address L, const MovedStack& moved)
      : memory_(memory), layout_(layout), L_(L), moved_(moved) {}
  bool read(Address address, std::span<std::byte> into) const override;
  void prefetch(Address address, std::size_t size) const override { memory_.prefetch(address, size); }

 private:
  const Memory& memory_;
  const LuajitLayout& layout_;
  Address L_;
  MovedStack moved_;
};

// The function in a stack slot of `L`, called or not: GC64 keeps it in the slot below the base,
// otherwise it is in the frame's slot. False if there is none.
bool read_function_at(const Memory& memory, const LuajitLayout& layout, Address L, Address slot, LuaCall& call);

}  // namespace luaspy
