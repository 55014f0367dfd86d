// A thread for each request, one after the other, each with a Lua state of its own: three quarters of a
// request's CPU time are hot(), then one quarter is cold().
//   request_threads MS COUNT
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char* const code =
    "local ms, cpu = ...\n"
    "local function work() local sum = 0 for i = 1, 300 do sum = sum + i % 7 end return sum end\n"
    "local function hot() local start = cpu() while cpu() - start < ms * 0.75 do work() end end\n"
    "local function cold() local start = cpu() while cpu() - start < ms * 0.25 do work() end end\n"
    "hot()\n"
    "cold()\n";

static int cpu_ms(lua_State* L) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  lua_pushnumber(L, (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6);
  return 1;
}

static void* request(void* ms) {
  lua_State* const L = luaL_newstate();
  luaL_openlibs(L);
  if (luaL_loadstring(L, code) != 0) abort();
  lua_pushnumber(L, *(double*)ms);
  lua_pushcfunction(L, cpu_ms);
  if (lua_pcall(L, 2, 0, 0) != 0) abort();
  lua_close(L);
  return NULL;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  double ms = atof(words[1]);
  for (int left = atoi(words[2]); left > 0; --left) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, request, &ms) != 0 || pthread_join(thread, NULL) != 0) return 1;
  }
  return 0;
}
