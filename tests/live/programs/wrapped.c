/* wrapped on|off: a host whose LuaJIT calls C functions through a wrapper of the host, or did so before. Works forever;
 * says READY. */
#include <stdio.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"
#include "luajit.h"
#include "lualib.h"

static const char code[] =
    "local function leaf(n) local x = 0 for i = 1, n do x = (x + payload(i)) % 1009 end return x end\n"
    "local function outer() for i = 1, 100 do leaf(1000) end ready() while true do leaf(1000) end end\n"
    "outer()\n";

static int wrapper(lua_State* L, lua_CFunction function) { return function(L); }

static int payload(lua_State* L) {
  volatile int i;
  for (i = 0; i < 1000; ++i) {
  }
  lua_pushinteger(L, i);
  return 1;
}

static int ready(lua_State* L) {
  (void)L;
  puts("READY");
  fflush(stdout);
  return 0;
}

int main(int argc, char** argv) {
  lua_State* L = luaL_newstate();
  if (argc != 2) return 2;
  luaL_openlibs(L);
  lua_pushlightuserdata(L, (void*)wrapper);
  if (!luaJIT_setmode(L, -1, LUAJIT_MODE_WRAPCFUNC | LUAJIT_MODE_ON)) return 1;
  lua_pop(L, 1);
  lua_register(L, "payload", payload);
  lua_register(L, "ready", ready);
  if (strcmp(argv[1], "off") == 0 && !luaJIT_setmode(L, 0, LUAJIT_MODE_WRAPCFUNC | LUAJIT_MODE_OFF)) return 1;
  if (luaL_loadbuffer(L, code, sizeof code - 1, "=wrapped") || lua_pcall(L, 0, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return 1;
  }
  return 0;
}
