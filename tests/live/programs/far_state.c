/* A Lua behind 2 GiB of memory of which nearly nothing is in use. Says READY. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const size_t before = (size_t)2 << 30, own = 64 << 20;
static char *next, *end;

/* Never frees. */
static void* allocate(void* unused, void* block, size_t old_size, size_t size) {
  char* made = next;
  (void)unused;
  if (size == 0) return NULL;
  if (block != NULL && size <= old_size) return block;
  if ((size_t)(end - next) < size + 16) return NULL;
  next += (size + 15) / 16 * 16;
  for (size_t i = 0; block != NULL && i < old_size; ++i) made[i] = ((char*)block)[i];
  return made;
}

int main(void) {
  lua_State* L;
  char* memory = mmap(NULL, before + own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 1;
  next = memory + before;
  end = next + own;
  L = lua_newstate(allocate, NULL);
  if (L == NULL) return 1;
  luaL_openlibs(L);
  puts("READY");
  fflush(stdout);
  return getchar() == EOF ? 0 : 1;
}
