/* trampoline: a module whose functions are all the same C function, whose upvalue selects what it does, as in mpv.
   One of them waits: it says READY and reads its input. */
#include <stdio.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static int trampoline(lua_State* L) {
  char byte;
  if (lua_tointeger(L, lua_upvalueindex(1)) != 3) return 0;
  printf("READY\n");
  fflush(stdout);
  return read(0, &byte, 1) < 0;
}

static int open_module(lua_State* L) {
  static const char* const names[] = {"abort", "begin", "close", "wait_here", "zero"};
  lua_newtable(L);
  for (int i = 0; i < 5; ++i) {
    lua_pushinteger(L, i);
    lua_pushcclosure(L, trampoline, 1);
    lua_setfield(L, -2, names[i]);
  }
  return 1;
}

int main(void) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  luaL_requiref(L, "things", open_module, 1);
  if (luaL_dostring(L, "local function f() things.wait_here() end f()") != 0) return 1;
  return 0;
}
