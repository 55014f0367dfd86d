/* callback: calls a callback of LuaJIT's FFI, forever, from a C function that Lua did not call. Says READY. */
#include <stdint.h>
#include <stdio.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char code[] =
    "local ffi = require('ffi')\n"
    "local sum = 0\n"
    "local function leaf(n) for i = 1, n do sum = (sum + i) % 1009 end end\n"
    "local function on_call(n) leaf(n) end\n"
    "callback = ffi.cast('void (*)(int)', on_call)\n"
    "return tonumber(ffi.cast('intptr_t', callback))\n";

__attribute__((noinline)) static void call_forever(void (*callback)(int)) {
  int i;
  for (i = 0;; ++i) {
    callback(1000);
    if (i != 1000) continue;
    puts("READY");
    fflush(stdout);
  }
}

int main(void) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  if (luaL_loadbuffer(L, code, sizeof code - 1, "=callback") || lua_pcall(L, 0, 1, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return 1;
  }
  call_forever((void (*)(int))(intptr_t)lua_tonumber(L, -1));
  return 0;
}
