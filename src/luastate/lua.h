#pragma once
// A Lua: where its objects keep what, and how they are read. There is a PucLua (puc/puc_lua.h) for
// each layout of offsets, and a LuajitLua (luajit/luajit_lua.h) for each LuaJIT whose offsets were
// found. luas.h makes both; everything else in luastate/ asks a Lua.
//
// A Lua has five facets, and whoever needs only one takes that: a Lua converts to each of them. They
// are bases, not members that functions return, so a call names what it wants and nothing is handed
// on.
//
// All of it is read from memory of a target, which may be changing, or be no such object at all.
// Where something does not fit, the result is that there is nothing, and never an error. Sizes and
// loops are bounded. A Lua never changes and lives as long as luaspy, so anybody may keep a pointer
// to it, and threads may share it.

#include "luastate/lua_functions.h"
#include "luastate/lua_heap.h"
#include "luastate/lua_stacks.h"
#include "luastate/lua_states.h"
#include "luastate/lua_tables.h"

namespace luaspy {

class Lua : public LuaStates, public LuaStacks, public LuaFunctions, public LuaTables, public LuaHeap {
 public:
  virtual ~Lua() = default;
  Lua(const Lua&) = delete;
  Lua& operator=(const Lua&) = delete;

  // This Lua, knowing the types of its numbers, as far as the state `G` shows them. PUC can be built with
  // others than double and 64-bit integers; without this, numbers that may be of other types are
  // Value::Type::unknown_number. Reads tables of the state: some 100 µs.
  virtual const Lua& with_number_types(const Memory&, Address) const { return *this; }

 protected:
  // `registry`: bytes from the global_State on. `upvalue_count`: from a closure on.
  Lua(LuaKind kind, const StateFields& state, Offset registry, Offset upvalue_count, const Sizes& sizes)
      : LuaStates(kind, state, registry), LuaFunctions(upvalue_count, kind == LuaKind::luajit), LuaTables(sizes) {}
};

}  // namespace luaspy
