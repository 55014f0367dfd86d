/* unprotected WAY: hosts that call Lua by lua_call, without a protected call around it. Works forever; says READY.
   turns      two states take turns on one thread, called from two C functions
   inside     Lua of a state is called unprotected by a C function that Lua of another, protected state has called
   back       the same, and the inner state calls back the outer one
   coroutine  the main thread is unprotected, coroutines work
   thread     a thread of lua_newthread is called
   function   a C function is called, which calls Lua of another state, which works
   threads    like turns, on two threads at once, each of which knows the other's states */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char code_1[] =
    "function leaf(n) local x = 0 for i = 1, n do x = (x + i) % 1009 end return x end\n"
    "function work(n) local x = 0 for i = 1, 20 do x = x + leaf(n) end return x end\n"
    "function through() local x = enter() return x end\n"
    "function resumes() local x = coroutine.wrap(function() return work(1000) end)() return x end\n";
static const char code_2[] =
    "function leaf(n) local x = 0 for i = 1, n do x = (x + i) % 1009 end return x end\n"
    "function work(n) local x = 0 for i = 1, 20 do x = x + leaf(n) end return x end\n"
    "function through() local x = enter() return x end\n";

struct pair {
  lua_State *first, *second;
  struct pair* other;
};
static __thread struct pair* pair;

static void call(lua_State* L, const char* function) {
  lua_getglobal(L, function);
  lua_pushinteger(L, 1000);
  lua_call(L, 1, 0);
}

static int enter_second(lua_State* L) {
  call(pair->second, "work");
  lua_pushinteger(L, 1);
  return 1;
}

static int enter_through(lua_State* L) {
  call(pair->second, "through");
  lua_pushinteger(L, 1);
  return 1;
}

static int back_to_first(lua_State* L) {
  call(pair->first, "work");
  lua_pushinteger(L, 1);
  return 1;
}

static lua_State* make(const char* code, const char* name, lua_CFunction enter) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, enter);
  lua_setglobal(L, "enter");
  if (luaL_loadbuffer(L, code, strlen(code), name)) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  lua_call(L, 0, 0);
  return L;
}

__attribute__((noinline)) static void call_first(void) {
  call(pair->first, "work");
  __asm__ volatile("");
}
__attribute__((noinline)) static void call_second(void) {
  call(pair->second, "work");
  __asm__ volatile("");
}

static void step(const char* way) {
  lua_State *L = pair->first, *called = NULL;
  if (strncmp(way, "turns", 5) == 0 || strcmp(way, "threads") == 0) {
    call_first();
    call_second();
  } else if (strcmp(way, "inside") == 0 || strcmp(way, "back") == 0) {
    lua_getglobal(L, "through");
    if (lua_pcall(L, 0, 0, 0)) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  } else if (strcmp(way, "coroutine") == 0) {
    call(L, "resumes");
  } else if (strcmp(way, "thread") == 0) {
    called = lua_newthread(L);
    call(called, "work");
    lua_settop(L, 0);
  } else {
    call(L, "enter");
  }
}

static void* run(void* argument) {
  const char* const way = argument;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static struct pair pairs[2];
  static int count;
  const int back = strcmp(way, "back") == 0;
  volatile lua_State* kept[4];
  int i, me;
  pthread_mutex_lock(&mutex);
  me = count++ & 1;
  pair = &pairs[me];
  pair->other = &pairs[1 - me];
  pair->first = make(code_1, "=first", back ? enter_through : enter_second);
  pair->second = make(code_2, "=second", back_to_first);
  pthread_mutex_unlock(&mutex);
  for (i = 0;; ++i) {
    kept[0] = pair->first, kept[1] = pair->second, kept[2] = pair->other->first, kept[3] = pair->other->second;
    __asm__ volatile("" : : "r"(kept) : "memory");
    step(way);
    if (i != 20 || me != 0) continue;
    puts("READY");
    fflush(stdout);
  }
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t thread;
  if (argc != 2) return 2;
  if (strcmp(argv[1], "threads") == 0 && pthread_create(&thread, NULL, run, argv[1])) return 1;
  run(argv[1]);
  return 0;
}
