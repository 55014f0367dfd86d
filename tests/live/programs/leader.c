/* leader WHEN: Lua on a thread of a process whose first thread ends. "first": before READY is said. "asked": at a line
   on standard input; until then the first thread also runs Lua. The process continues. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char* when;

/* The state of the first thread, which /proc shows after its name. */
static int first_has_ended(void) {
  char path[64], text[512];
  FILE* file;
  size_t size;
  sprintf(path, "/proc/self/task/%d/stat", (int)getpid());
  file = fopen(path, "r");
  if (file == NULL) exit(1);
  size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[size] = 0;
  return strrchr(text, ')')[2] == 'Z';
}

static int started(lua_State* L) {
  (void)L;
  while (strcmp(when, "first") == 0 && !first_has_ended()) sched_yield();
  puts("READY");
  fflush(stdout);
  return 0;
}

static void run(const char* name, const char* code) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, started);
  lua_setglobal(L, "started");
  if (luaL_loadbuffer(L, code, strlen(code), name) != 0 || lua_pcall(L, 0, 0, 0) != 0) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
  lua_close(L);
}

static void* work(void* unused) {
  (void)unused;
  run("=worker",
      "local function leaf(x) for i = 1, 1000 do x = (x + i) % 1024 end return x end\n"
      "local function body() local x = 0 started() while true do x = leaf(x) end end\n"
      "body()\n");
  return NULL;
}

static void* wait_for_line(void* stop) {
  if (getchar() == EOF) exit(1);
  *(volatile int*)stop = 1;
  return NULL;
}

static volatile int stop;

static int goes_on(lua_State* L) {
  lua_pushboolean(L, !stop);
  return 1;
}

int main(int argc, char** argv) {
  pthread_t worker, reader;
  when = argc > 1 ? argv[1] : "";
  pthread_create(&worker, NULL, work, NULL);
  if (strcmp(when, "asked") == 0) {
    lua_State* L = luaL_newstate();
    static const char code[] = "local function first() for i = 1, 100000 do end end while goes_on() do first() end";
    luaL_openlibs(L);
    lua_pushcfunction(L, goes_on);
    lua_setglobal(L, "goes_on");
    pthread_create(&reader, NULL, wait_for_line, (void*)&stop);
    if (luaL_loadbuffer(L, code, sizeof code - 1, "=first") != 0 || lua_pcall(L, 0, 0, 0) != 0) return 1;
    lua_close(L);
  }
  pthread_exit(NULL);
}
