#pragma once
// What a look has learned about a LuaJIT state, in addition to its calls.

#include <cstdint>
#include <vector>

#include "base/sample.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/luajit/traces.h"
#include "luastate/luajit/walk_luajit.h"
#include "luastate/running.h"

namespace luaspy {

// `cframes`, `saved_base` and `saved_pc` are set for every state, the other fields only for the
// innermost.
struct LuajitState : StateNotes {
  std::vector<Address> cframes;          // of the VM, innermost first
  Address jit_base = 0;                  // of the trace that this state runs; 0: none
  bool has_jit_base = false;             // there is one, even if it cannot be trusted
  std::int32_t vmstate = 0;              // global_State's
  Address saved_base = 0, saved_pc = 0;  // L->base; SAVE_PC of the innermost C frame
  MovedStack moved;                      // set while the Lua stack was being moved
  Trace trace;                           // object 0: none

  std::span<const Address> vm_frames() const override { return cframes; }
  bool on_trace() const override { return jit_base != 0; }
};

// Of a state of LuaJIT.
inline const LuajitLayout& luajit_layout_of(const ActiveState& state) {
  return static_cast<const LuajitLua&>(*state.lua).layout();
}

// The meaning of `vmstate`. It is outdated for a moment when a trace is entered or left.
VmState vm_state_said(const LuajitLayout& layout, const LuajitState& state);

}  // namespace luaspy
