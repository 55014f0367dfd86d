/* allocations SCRIPT WORKLOAD [jit-off]: runs a workload of allocations.lua with an allocation function that counts, by
   the site that the workload names with at(). Prints where the counts are, says READY, and runs until it is killed. */
#include <stdio.h>
#include <stdlib.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { sites = 8 };
static volatile struct { long site, calls[sites], bytes[sites]; /* of calls that make the heap larger */ } truth;

static void* counting(void* data, void* block, size_t old_size, size_t size) {
  (void)data;
  const size_t growth = block == NULL ? size : size > old_size ? size - old_size : 0;
  if (growth != 0) {
    truth.calls[truth.site]++;
    truth.bytes[truth.site] += (long)growth;
  }
  if (size != 0) return realloc(block, size);
  free(block);
  return NULL;
}

static int at(lua_State* L) {
  truth.site = (long)luaL_checkinteger(L, 1);
  return 0;
}

int main(int argc, char** argv) {
#if LUA_VERSION_NUM >= 505
  lua_State* const L = lua_newstate(counting, NULL, 0);
#else
  lua_State* const L = lua_newstate(counting, NULL);
#endif
  if (argc < 3 || L == NULL) return 2;
  luaL_openlibs(L);
  lua_register(L, "at", at);
  printf("%p\nREADY\n", (void*)&truth);
  fflush(stdout);
  if (luaL_loadfile(L, argv[1]) != 0) return 1;
  lua_pushstring(L, argv[2]);
  lua_pushstring(L, argc > 3 ? argv[3] : "");
  return lua_pcall(L, 2, 0, 0);
}
