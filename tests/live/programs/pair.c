/* pair SCRIPT: two threads run a script, each in a global state of its own, in which `which` is 1 or 2. Says READY when
   both have called started(). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char* script;
static atomic_int running;

static int started(lua_State* L) {
  (void)L;
  if (++running == 2) puts("READY"), fflush(stdout);
  return 0;
}

static void* run(void* which) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "started", started);
  lua_pushinteger(L, *(const int*)which);
  lua_setglobal(L, "which");
  if (luaL_loadfile(L, script) || lua_pcall(L, 0, 0, 0)) fprintf(stderr, "%s\n", lua_tostring(L, -1)), exit(1);
  return NULL;
}

int main(int count, char** arguments) {
  static const int numbers[] = {1, 2};
  pthread_t thread;
  if (count != 2) return 1;
  script = arguments[1];
  if (pthread_create(&thread, NULL, run, (void*)&numbers[0])) return 1;
  run((void*)&numbers[1]);
  return 0;
}
