/* A Lua interpreter for sources without lua.c: runs a script with its arguments. */
#include <stdio.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

int main(int argc, char** argv) {
  int i;
  lua_State* L = luaL_newstate();
  if (!L || argc < 2) return 1;
  luaL_openlibs(L);
  lua_newtable(L);
  for (i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 1);
  }
  lua_setglobal(L, "arg");
  if (luaL_loadfile(L, argv[1])) goto failed;
  for (i = 2; i < argc; i++) lua_pushstring(L, argv[i]);
  if (lua_pcall(L, argc - 2, 0, 0)) goto failed;
  lua_close(L);
  return 0;
failed:
  fprintf(stderr, "%s\n", lua_tostring(L, -1));
  return 1;
}
