#pragma once
// A Lua state in which work.lua is ready to run, for hosts of our own.

#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <lualib.h>

// A new state with the function go() of host.lua, which works for that many seconds. `clock`: replaces os.clock, if not
// null.
static lua_State* new_state(lua_CFunction clock) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  if (clock != NULL) {
    lua_getglobal(L, "os");
    lua_pushcfunction(L, clock);
    lua_setfield(L, -2, "clock");
    lua_settop(L, 0);
  }
  if (luaL_dofile(L, "/outsider/host.lua") != LUA_OK) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
  return L;
}

static void go(lua_State* L, double seconds) {
  lua_getglobal(L, "go");
  lua_pushnumber(L, seconds);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
}
