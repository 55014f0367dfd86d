/* Two Luas in one thread that allocate by turns, and the second one also while the first one calls C. Each has an
   allocation function of its own that counts, as in allocations.c: part K is site K + 1. Compiled with PART=name it is
   a function that runs Lua, together with a Lua whose symbols are local; without PART it is the program. Prints where
   the counts are, says READY, and runs until it is killed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { sites = 8 };
struct truth {
  long site, calls[sites], bytes[sites]; /* of calls that make the heap larger */
};
extern volatile struct truth counted;
void part_0(void (*inside)(void));
void part_1(void (*inside)(void));

#ifdef PART
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static void (*inner)(void);

static void* counting(void* data, void* block, size_t old_size, size_t size) {
  const size_t growth = block == NULL ? size : size > old_size ? size - old_size : 0;
  if (growth != 0) {
    counted.calls[(long)data]++;
    counted.bytes[(long)data] += (long)growth;
  }
  if (size != 0) return realloc(block, size);
  free(block);
  return NULL;
}

static int call_inside(lua_State* L) {
  (void)L;
  if (inner != NULL) inner();
  return 0;
}

void PART(void (*inside)(void)) {
  static lua_State* L;
  const long site = NAME[sizeof NAME - 2] - '0' + 1;
  if (L == NULL) {
    char code[512];
    snprintf(code, sizeof code,
             "local inside = ...\n"
             "local function parts_site%ld(n) for i = 1, n do local t = {i} t = {i} end end\n"
             "local function burn(n) local x = 1 for i = 1, n do x = (x * 31 + i) %% 65537 end return x end\n"
             "function work() parts_site%ld(%d) burn(3000) inside() parts_site%ld(50) end\n",
             site, site, site == 1 ? 100 : 250, site);
#if LUA_VERSION_NUM >= 505
    L = lua_newstate(counting, (void*)site, 0);
#else
    L = lua_newstate(counting, (void*)site);
#endif
    luaL_openlibs(L);
    luaL_loadbuffer(L, code, strlen(code), NAME);
    lua_pushcfunction(L, call_inside);
    if (lua_pcall(L, 1, 0, 0)) exit(1);
  }
  inner = inside;
  lua_getglobal(L, "work");
  if (lua_pcall(L, 0, 0, 0)) exit(1);
}
#else
volatile struct truth counted;
static void from_lua(void) { part_1(NULL); }

int main(void) {
  for (long i = 0;; ++i) {
    part_0(NULL);
    part_1(NULL);
    part_0(from_lua);
    if (i != 3) continue;
    printf("%p\nREADY\n", (void*)&counted);
    fflush(stdout);
  }
}
#endif
