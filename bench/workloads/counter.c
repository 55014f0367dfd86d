/* The Lua module "counter": words that target and bench share. The bench finds them at the address that the target
   prints, reads the target's progress, and writes what it should do. */
#include <stdint.h>

#include "lauxlib.h"
#include "lua.h"

static volatile struct {
  uint64_t progress, looks;
  uint32_t wanted, doing;
} cell;

static int step(lua_State* L) {
  ++cell.progress;
  lua_pushinteger(L, (lua_Integer)cell.wanted);
  return 1;
}

static int look(lua_State* L) {
  (void)L;
  ++cell.looks;
  return 0;
}

static int doing(lua_State* L) {
  cell.doing = (uint32_t)luaL_checkinteger(L, 1);
  return 0;
}

int luaopen_counter(lua_State* L) {
  lua_newtable(L);
  lua_pushcfunction(L, step);
  lua_setfield(L, -2, "step");
  lua_pushcfunction(L, look);
  lua_setfield(L, -2, "look");
  lua_pushcfunction(L, doing);
  lua_setfield(L, -2, "doing");
  lua_pushnumber(L, (lua_Number)(uintptr_t)&cell);
  lua_setfield(L, -2, "address");
  return 1;
}
