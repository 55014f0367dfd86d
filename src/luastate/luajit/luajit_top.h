#pragma once
// Where a walk of a LuaJIT lua_State begins (walk_luajit.h).

#include <cstdint>
#include <span>

#include "base/memory.h"

namespace luaspy {

// A frame that machine code has not written to the Lua stack: a function inlined into a trace.
struct InlinedFrame {
  Address frame = 0;       // where it would be
  std::uint64_t link = 0;  // 0: use the one on the stack; a tail call has replaced only the function
  Address function = 0;    // GCfunc; 0: not known, then proto is set
  Address proto = 0;
  Address continuation_pc = 0;  // of a frame of type CONT
};

// Where a walk begins.
struct LuajitTop {
  Address base = 0;                       // of the innermost frame
  Address pc = 0;                         // its next instruction, if it is a Lua function; 0: not known
  std::span<const InlinedFrame> inlined;  // innermost first
  // The link that its function is returning by: the call is over, and its slots may be overwritten.
  // 0: it still runs.
  std::uint64_t left_by = 0;
};

}  // namespace luaspy
