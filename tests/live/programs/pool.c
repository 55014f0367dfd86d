/* pool: a host with 2,000 lua_States in a local array. Argument: "one" (one of them runs) or "turns" (each runs for a
   moment, then the next). The state number n calls its own function, in line n of its script. Says READY once all are
   there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { states = 2000 };

static lua_State* new_state(int n) {
  static const char code[] =
      "local function leaf(x) for i = 1, 100 do x = (x + i) % 1024 end return x end\n"
      "function work(rounds) local x = 0 for i = 1, rounds do x = leaf(x) end return x end\n";
  lua_State* const L = luaL_newstate();
  char name[16];
  snprintf(name, sizeof name, "=state_%d", n);
  if (L == NULL) exit(1);
  luaL_openlibs(L);
  if (luaL_loadbuffer(L, code, strlen(code), name) != 0 || lua_pcall(L, 0, 0, 0) != 0) exit(1);
  return L;
}

__attribute__((noinline)) static void work(lua_State* L, int rounds) {
  lua_getglobal(L, "work");
  lua_pushinteger(L, rounds);
  if (lua_pcall(L, 1, 0, 0) != 0) exit(1);
}

int main(int argc, char** argv) {
  lua_State* pool[states];
  const int turns = argc == 2 && strcmp(argv[1], "turns") == 0;
  int i;
  for (i = 0; i < states; ++i) pool[i] = new_state(i);
  puts("READY");
  fflush(stdout);
  for (i = 0;; i = (i + 1) % states) work(pool[turns ? i : states / 2], turns ? 10000 : 1 << 20);
}
