/* deadlock: two threads with a Lua state each; each locks its own mutex, and when both have done so, the other's. Says
 * READY when no thread can continue. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_int holding;

static int lock(lua_State* L) {
  pthread_mutex_lock(&mutexes[lua_tointeger(L, 1)]);
  return 0;
}

static int meet(lua_State* L) {
  (void)L;
  ++holding;
  while (holding < 2) {
  }
  return 0;
}

static void* run(void* argument) {
  static const char code[] =
      "local mine, other = ...\n"
      "local function take(number) lock(number) end\n"
      "local function work()\n"
      "  take(mine)\n"
      "  meet()\n"
      "  take(other)\n"
      "end\n"
      "work()\n";
  const int number = *(const int*)argument;
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "lock", lock);
  lua_register(L, "meet", meet);
  if (luaL_loadbuffer(L, code, strlen(code), "=deadlock") != 0) abort();
  lua_pushinteger(L, number);
  lua_pushinteger(L, 1 - number);
  lua_call(L, 2, 0);
  return NULL;
}

int main(void) {
  static const int numbers[2] = {0, 1};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, run, (void*)&numbers[i]) != 0) return 1;
  }
  while (holding < 2) {
  }
  printf("READY\n");
  fflush(stdout);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}
