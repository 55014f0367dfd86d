#pragma once
// What a look has learned about a LuaJIT state besides its calls.

#include <cstdint>
#include <vector>

#include "base/sample.h"
#include "luastate/luajit/traces.h"
#include "luastate/luajit/walk_luajit.h"

namespace luaspy {

// All but `cframes` and `trace` are set for the innermost state only, `saved_base` and `saved_pc` for all.
struct LuajitState {
  std::vector<Address> cframes;          // of the VM, innermost first
  Address jit_base = 0;                  // of the trace that this state runs; 0: none
  bool has_jit_base = false;             // there is one, whether it can be believed or not
  std::int32_t vmstate = 0;              // global_State's
  Address saved_base = 0, saved_pc = 0;  // L->base; SAVE_PC of the innermost C frame
  MovedStack moved;                      // the Lua stack was being moved
  Trace trace;                           // object 0: none
};

// What `vmstate` says. It lags behind at the edges of a trace.
VmState vm_state_said(const LuajitLayout& layout, const LuajitState& state);

}  // namespace luaspy
