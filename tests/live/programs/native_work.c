/* native_work: a C function that Lua knows as demo.work, and that does all its work in two further C functions. Says
   READY and runs for ever. */
#include <stdio.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static volatile unsigned sink;

__attribute__((noinline)) static void inner(unsigned n) {
  unsigned i;
  for (i = 0; i < n; ++i) sink = sink * 1664525u + i;
}

__attribute__((noinline)) static void outer(unsigned n) {
  inner(n);
  sink += 1;
}

static int work(lua_State* L) {
  outer((unsigned)lua_tonumber(L, 1));
  sink += 1;
  return 0;
}

int main(void) {
  static const char code[] = "io.write('READY\\n') io.flush() while true do demo.work(1000000) end";
  lua_State* const L = luaL_newstate();
  luaL_openlibs(L);
  lua_newtable(L);
  lua_pushcfunction(L, work);
  lua_setfield(L, -2, "work");
  lua_setglobal(L, "demo");
  if (luaL_loadstring(L, code) != 0 || lua_pcall(L, 0, 0, 0) != 0) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  return 1;
}
