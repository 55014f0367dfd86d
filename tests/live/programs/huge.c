/* A Lua with a userdata of 5 GiB, of which only the beginning is ever touched: the rest needs no memory. Says READY. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const size_t huge = (size_t)1 << 30;

static void* allocate(void* unused, void* block, size_t old_size, size_t size) {
  (void)unused;
  if (block != NULL && old_size >= huge && size == 0) {
    munmap(block, old_size);
    return NULL;
  }
  if (block == NULL && size >= huge) {
    block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block != MAP_FAILED ? block : NULL;
  }
  if (size != 0) return realloc(block, size);
  free(block);
  return NULL;
}

int main(void) {
  lua_State* L = lua_newstate(allocate, NULL);
  if (L == NULL) return 1;
  luaL_openlibs(L);
  lua_gc(L, LUA_GCSTOP, 0);
  lua_newuserdata(L, (size_t)5 << 30);
  lua_setglobal(L, "huge");
  puts("READY");
  fflush(stdout);
  getchar();
  lua_close(L);
  return 0;
}
