/* Several Luas in one program. Compiled with PART=name it is a function that runs Lua for less than a millisecond,
   together with a Lua whose symbols are local; without PART it is the program, which calls part_0 and part_1 by turns,
   and also part_1 from Lua of part_0. Each of the three gets the same CPU time, however fast its Lua is. Says READY. */
#include <stdio.h>
#include <time.h>

void part_0(void (*inside)(void));
void part_1(void (*inside)(void));

#ifdef PART
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char code[] =
    "function leaf(n) local x = 0 for i = 1, n do x = (x + i) % 1009 end return x end\n"
    "function work(n) local x = 0 for i = 1, 20 do x = x + leaf(n) end return x end\n"
    "function through(n) local x = inside() return x end\n";

static void (*inner)(void);

static int call_inside(lua_State* L) {
  inner();
  lua_pushinteger(L, 1);
  return 1;
}

void PART(void (*inside)(void)) {
  static lua_State* L;
  if (L == NULL) {
    L = luaL_newstate();
    luaL_openlibs(L);
    lua_pushcfunction(L, call_inside);
    lua_setglobal(L, "inside");
    if (luaL_loadbuffer(L, code, sizeof code - 1, NAME) || lua_pcall(L, 0, 0, 0))
      fprintf(stderr, "%s\n", lua_tostring(L, -1));
  }
  inner = inside;
  lua_getglobal(L, inside != NULL ? "through" : "work");
  lua_pushinteger(L, 1000);
  if (lua_pcall(L, 1, 0, 0)) fprintf(stderr, "%s\n", lua_tostring(L, -1));
}
#else
static void from_lua(void) { part_1(NULL); }

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void run(void (*part)(void (*)(void)), void (*inside)(void)) {
  const double end = cpu_ms() + 4;
  while (cpu_ms() < end) part(inside);
}

int main(void) {
  int i;
  for (i = 0;; ++i) {
    run(part_0, NULL);
    run(part_1, NULL);
    run(part_0, from_lua);
    if (i != 5) continue;
    puts("READY");
    fflush(stdout);
  }
}
#endif
