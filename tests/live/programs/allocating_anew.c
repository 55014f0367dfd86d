/* allocating_anew: one Lua after the other is made at the same address, each with an allocation function and
   userdata of its own, keeps all that it makes, and is closed after some 300 ms. The functions count, as in
   allocations.c: Luas with an odd number are site 1, the others site 2. Prints where the counts are, says READY, and
   runs until it is killed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { sites = 8, arena_size = 64 << 20 };
static volatile struct { long site, calls[sites], bytes[sites]; /* of calls that make the heap larger */ } truth;

/* Gives the same addresses to each Lua that asks for the same blocks. */
static char* arena;
static size_t used;

static void* allocate(long site, void* block, size_t old_size, size_t size) {
  char* made;
  const size_t growth = block == NULL ? size : size > old_size ? size - old_size : 0;
  if (growth != 0) {
    truth.calls[site]++;
    truth.bytes[site] += (long)growth;
  }
  if (size == 0) return NULL;
  if (block != NULL && size <= old_size) return block;
  if (used + size > arena_size) return NULL;
  made = arena + used;
  used += (size + 15) / 16 * 16;
  if (block != NULL) memcpy(made, block, old_size);
  return made;
}
static void* odd(void* data, void* block, size_t old_size, size_t size) {
  (void)data;
  return allocate(1, block, old_size, size);
}
static void* even(void* data, void* block, size_t old_size, size_t size) {
  (void)data;
  return allocate(2, block, old_size, size);
}

static const char code[] =
    "local over = ...\n"
    "local kept = {}\n"
    "local function burn(n) local x = 1 for i = 1, n do x = (x * 31 + i) % 65537 end return x end\n"
    "local function anew_site1() for i = 1, 50 do kept[#kept + 1] = {i} end end\n"
    "local function anew_site2() for i = 1, 50 do kept[#kept + 1] = {i} end end\n"
    "while not over() do if odd then anew_site1() else anew_site2() end burn(20000) end\n";

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double end_ms;
static int over(lua_State* L) {
  lua_pushboolean(L, now_ms() > end_ms);
  return 1;
}

int main(void) {
  arena = malloc(arena_size);
  for (long number = 1;; ++number) {
    lua_State* L;
    used = 0;
    end_ms = now_ms() + 300;
#if LUA_VERSION_NUM >= 505
    L = lua_newstate(number % 2 ? odd : even, (void*)number, 0);
#else
    L = lua_newstate(number % 2 ? odd : even, (void*)number);
#endif
    luaL_openlibs(L);
    lua_pushboolean(L, number % 2);
    lua_setglobal(L, "odd");
    if (luaL_loadbuffer(L, code, sizeof code - 1, "=anew")) return 1;
    lua_pushcfunction(L, over);
    if (number == 1) {
      printf("%p\nREADY\n", (void*)&truth);
      fflush(stdout);
    }
    if (lua_pcall(L, 1, 0, 0)) {
      fprintf(stderr, "%s\n", lua_tostring(L, -1));
      return 1;
    }
    lua_close(L);
  }
}
