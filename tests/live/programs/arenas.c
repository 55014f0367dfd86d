/* arenas own|turns: only threads other than the first allocate, so that all of Lua's objects are in arenas of malloc
   that grow by mprotect. own: one thread makes a state and works in it. turns: two threads take turns on one state;
   each makes coroutines and continues one that the other has made. Says READY. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char code[] =
    "local kept, waiting, pad = {}, nil, string.rep('x', 16000)\n"
    "local function leaf(seconds) local till, x = os.clock() + seconds, 0 repeat for i = 1, 1000 do x = (x + i) % 1009 "
    "end until os.clock() > till return x end\n"
    "local function body(n) local filler = pad .. n while filler do leaf(0.002) coroutine.yield() end end\n"
    "function turn(n)\n"
    "  local mine = coroutine.create(body)\n"
    "  kept[#kept % 3000 + 1] = mine\n"
    "  if waiting then coroutine.resume(waiting, n) end\n"
    "  coroutine.resume(mine, n)\n"
    "  waiting = mine\n"
    "end\n";

enum { turns_before_ready = 20 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static lua_State* L;
static int turns, threads;

static void turn(void) {
  lua_getglobal(L, "turn");
  lua_pushinteger(L, ++turns);
  if (lua_pcall(L, 1, 0, 0)) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  if (turns != turns_before_ready) return;
  puts("READY");
  fflush(stdout);
}

static void* work(void* argument) {
  const int me = *(int*)argument;
  pthread_mutex_lock(&mutex);
  if (L == NULL) {
    L = luaL_newstate();
    luaL_openlibs(L);
    if (luaL_loadbuffer(L, code, sizeof code - 1, "=arenas") || lua_pcall(L, 0, 0, 0))
      fprintf(stderr, "%s\n", lua_tostring(L, -1));
  }
  for (;;) {
    while (turns % threads != me) pthread_cond_wait(&changed, &mutex);
    turn();
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

int main(int argc, char** argv) {
  static int numbers[2] = {0, 1};
  pthread_t thread;
  int i;
  if (argc != 2) return 2;
  threads = strcmp(argv[1], "turns") == 0 ? 2 : 1;
  for (i = 0; i < threads; ++i) {
    if (pthread_create(&thread, NULL, work, &numbers[i])) return 1;
  }
  pthread_join(thread, NULL);
  return 0;
}
