/* Several Luas in one process, none of which is running: the n-th has n coroutines that wait. One more was closed. */

#include <stdio.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static lua_State* make(int n) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushinteger(L, n);
  lua_setglobal(L, "n");
  if (luaL_dostring(L,
                    "kept = {} for i = 1, n do kept[i] = coroutine.create(function() coroutine.yield(i) end) "
                    "coroutine.resume(kept[i]) end"))
    return NULL;
  return L;
}

int main(void) {
  lua_State* closed = make(6);
  for (int n = 1; n <= 5; ++n) {
    if (make(n) == NULL) return 1;
  }
  lua_close(closed);
  puts("READY");
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}
