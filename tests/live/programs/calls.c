/* A host that calls Lua functions by itself, as servers call their handlers: calls SCRIPT. The script puts them into a
 * table "called"; they are called in turn. */

#include <stdio.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

int main(int argc, char** argv) {
  lua_State* L = luaL_newstate();
  int i, calls[16], count = 0;
  if (argc < 2 || L == NULL) return 1;
  luaL_openlibs(L);
  if (luaL_loadfile(L, argv[1]) != 0 || lua_pcall(L, 0, 0, 0) != 0) return 2;
  lua_getglobal(L, "called");
  for (i = 1; i <= 16; ++i) {
    lua_rawgeti(L, -1, i);
    if (lua_isnil(L, -1)) break;
    calls[count++] = luaL_ref(L, LUA_REGISTRYINDEX);
  }
  lua_pushnil(L);
  lua_setglobal(L, "called");
  lua_settop(L, 0);
  puts("READY");
  fflush(stdout);
  for (;;) {
    for (i = 0; i < count; ++i) {
      lua_rawgeti(L, LUA_REGISTRYINDEX, calls[i]);
      if (lua_pcall(L, 0, 0, 0) != 0) return 3;
    }
  }
}
