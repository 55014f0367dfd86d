/* allocating_threads [asleep]: threads with a Lua each that sleep most of the time and wake to allocate a little, and,
   without "asleep", one that allocates all the time. Each Lua has an allocation function that counts for its thread, as
   in allocations.c: thread K is site K. Prints where the counts are, says READY, and runs until it is killed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { sites = 8, threads = 4 };
static volatile struct { long site, calls[sites], bytes[sites]; /* of calls that make the heap larger */ } truth;

static void* counting(void* data, void* block, size_t old_size, size_t size) {
  const long site = (long)data;
  const size_t growth = block == NULL ? size : size > old_size ? size - old_size : 0;
  if (growth != 0) {
    truth.calls[site]++;
    truth.bytes[site] += (long)growth;
  }
  if (size != 0) return realloc(block, size);
  free(block);
  return NULL;
}

/* Each is called with `pause`, which sleeps for so many ms. */
static const char code[] =
    "local function burn(n) local x = 1 for i = 1, n do x = (x * 31 + i) % 65537 end return x end\n"
    "function threads_site1(pause) while true do for i = 1, 60 do local t = {i} end pause(10) end end\n"
    "function threads_site2(pause) while true do for i = 1, 15 do local f = function() return i end end pause(35) end "
    "end\n"
    "function threads_site3(pause)\n"
    "  local n = 0\n"
    "  while true do for i = 1, 10 do n = n + 1 local s = ('x'):rep(1000) .. n end pause(50) end\n"
    "end\n"
    "function threads_site4() while true do for i = 1, 50 do local t = {i, i} end burn(200000) end end\n";

static int pause_for(lua_State* L) {
  const long ms = (long)lua_tointeger(L, 1);
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
  return 0;
}

static void* run(void* number) {
  char name[32];
#if LUA_VERSION_NUM >= 505
  lua_State* const L = lua_newstate(counting, number, 0);
#else
  lua_State* const L = lua_newstate(counting, number);
#endif
  luaL_openlibs(L);
  snprintf(name, sizeof name, "threads_site%ld", (long)number);
  if (luaL_loadbuffer(L, code, sizeof code - 1, "=threads") || lua_pcall(L, 0, 0, 0)) exit(1);
  lua_getglobal(L, name);
  lua_pushcfunction(L, pause_for);
  lua_call(L, 1, 0);
  return NULL;
}

int main(int argc, char** argv) {
  const int asleep = argc > 1 && strcmp(argv[1], "asleep") == 0;
  pthread_t thread;
  for (long i = 1; i <= threads - asleep; ++i) {
    if (pthread_create(&thread, NULL, run, (void*)i) != 0) return 1;
  }
  printf("%p\nREADY\n", (void*)&truth);
  fflush(stdout);
  pthread_join(thread, NULL);
  return 0;
}
