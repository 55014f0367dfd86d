/* allocator: a state whose memory is malloc's, by an allocator of the program's own, and one that luaL_newstate makes.
   Says READY, and waits. */
#include <stdio.h>
#include <stdlib.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static void* from_malloc(void* data, void* block, size_t old_size, size_t size) {
  (void)data, (void)old_size;
  if (size != 0) return realloc(block, size);
  free(block);
  return NULL;
}

static int fill(lua_State* L) {
  luaL_openlibs(L);
  return luaL_dostring(L, "kept = {} for i = 1, 10000 do kept[i] = {i, 'kept ' .. i} end collectgarbage()");
}

int main(void) {
  lua_State *const own = lua_newstate(from_malloc, NULL), *const other = luaL_newstate();
  if (own == NULL || other == NULL || fill(own) || fill(other)) return 1;
  puts("READY");
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}
