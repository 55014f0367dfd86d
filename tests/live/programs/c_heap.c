/* A Lua whose objects are few among much memory of C: c_heap MIB SCRIPT ARGUMENT. Whenever Lua allocates, the program
   itself allocates and writes 32 KiB, too, until it has MIB, so that objects lie far from each other. */

#include <stdlib.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static size_t to_allocate;
static void* volatile last; /* the compiler must not leave out what nobody reads */

static void* allocate(void* unused, void* block, size_t old_size, size_t size) {
  const size_t filler = 32 << 10;
  (void)unused;
  (void)old_size;
  if (size == 0) {
    free(block);
    return NULL;
  }
  if (to_allocate >= filler) {
    void* own = malloc(filler);
    if (own == NULL) return NULL;
    memset(own, 'c', filler);
    *(void**)own = last;
    last = own;
    to_allocate -= filler;
  }
  return realloc(block, size);
}

int main(int count, char** words) {
  lua_State* L = lua_newstate(allocate, NULL);
  if (count != 4 || L == NULL) return 2;
  to_allocate = strtoul(words[1], NULL, 10) << 20;
  luaL_openlibs(L);
  while (to_allocate > (64 << 20)) free(allocate(NULL, NULL, 0, 100)); /* the rest lies among the objects */
  if (luaL_loadfile(L, words[2])) return 1;
  lua_pushstring(L, words[3]);
  return lua_pcall(L, 1, 0, 0);
}
