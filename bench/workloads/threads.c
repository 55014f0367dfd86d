/* threads ALL RUNNING: ALL threads with a Lua state each. RUNNING of them work; the others wait forever in a C function
   that Lua has called. Prints "READY ADDRESS", the address of its counter, when all threads exist. Needs Lua 5.4. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char code[] =
    "local function mix(a, b) return (a * 31 + b) % 1009 end\n"
    "local function work(round)\n"
    "  local row = {}\n"
    "  for i = 1, 24 do row[i] = mix(i, round) end\n"
    "  return table.concat(row, ','):sub(1, 8)\n"
    "end\n"
    "local function run() local round = 0 while true do round = round + 1 work(round) step() end end\n"
    "local function rest() wait() return 1 end\n"
    "return function(works) there() if works then run() end return rest() + 1 end\n";

static struct { _Atomic uint64_t progress; } cell;
static pthread_barrier_t all_there;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static int step(lua_State* L) {
  (void)L;
  atomic_fetch_add_explicit(&cell.progress, 1, memory_order_relaxed);
  return 0;
}

static int there(lua_State* L) {
  (void)L;
  pthread_barrier_wait(&all_there);
  return 0;
}

static int wait_for_ever(lua_State* L) {
  (void)L;
  pthread_mutex_lock(&mutex);
  for (;;) pthread_cond_wait(&never, &mutex);
  return 0;
}

static void check(lua_State* L, int status) {
  if (status == LUA_OK) return;
  fprintf(stderr, "threads: %s\n", lua_tostring(L, -1));
  exit(1);
}

static void* run(void* works) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "step", step);
  lua_register(L, "there", there);
  lua_register(L, "wait", wait_for_ever);
  check(L, luaL_loadbuffer(L, code, sizeof code - 1, "=threads"));
  check(L, lua_pcall(L, 0, 1, 0));
  lua_pushboolean(L, works != NULL);
  check(L, lua_pcall(L, 1, 0, 0));
  return NULL;
}

int main(int argc, char** argv) {
  const int all = argc > 1 ? atoi(argv[1]) : 0, running = argc > 2 ? atoi(argv[2]) : 0;
  pthread_t thread;
  int i;
  if (all < 1) return 2;
  pthread_barrier_init(&all_there, NULL, (unsigned)all + 1);
  for (i = 0; i < all; ++i) {
    if (pthread_create(&thread, NULL, run, i < running ? &cell : NULL) != 0) return 1;
  }
  pthread_barrier_wait(&all_there);
  printf("READY %llu\n", (unsigned long long)(uintptr_t)&cell);
  fflush(stdout);
  pthread_join(thread, NULL);
  return 0;
}
