/* victim BOARD MODE [ARGUMENT]: Lua works on the main thread, always with the same result, while the mode does
   something that a profiler could harm. Every difference from a run without a profiler is recorded on the board, which
   is a file. Says READY once it has the first result. */
#define _GNU_SOURCE
#include "victim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

struct Board* board;
const char *self, *board_path, *argument = "";

void add(uint64_t* number) { __atomic_fetch_add(number, 1, __ATOMIC_SEQ_CST); }

void wrong(const char* format, ...) {
  if (__atomic_fetch_add(&board->wrong, 1, __ATOMIC_SEQ_CST) == 0) {
    va_list values;
    va_start(values, format);
    vsnprintf(board->what, sizeof board->what, format, values);
    va_end(values);
  }
}

void must(int holds, const char* what) {
  if (holds) return;
  wrong("%s: %s", what, strerror(errno));
  perror(what);
  exit(1);
}

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pause_us(long us) {
  struct timespec left = {us / 1000000, us % 1000000 * 1000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static const char script[] =
    "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
    "local function words(text) local all = {} for word in string.gmatch(text, '%a+') do all[#all + 1] = word end "
    "return all end\n"
    "local function inner() for k = 1, 20 do coroutine.yield(k) end return 0 end\n"
    "return function(flush)\n"
    "  if flush and jit then jit.flush() end\n"
    "  local sum, t = fib(12), {}\n"
    "  for k = 1, 200 do t[k] = k * 7919 % 101 end\n"
    "  table.sort(t)\n"
    "  sum = sum + t[100] + #table.concat(words(string.rep('ab cd ', 20)))\n"
    "  local next = coroutine.wrap(inner)\n"
    "  for k = 1, 20 do sum = sum + next() end\n"
    "  local ok, message = pcall(error, 'x', 0)\n"
    "  if ok or message ~= 'x' then return -1 end\n"
    "  return sum\n"
    "end\n";
enum { right_sum = 144 + 50 + 80 + 210 }; /* fib(12), the 100th, 40 words of 2, 1 to 20 */

lua_State* new_lua(void) {
  lua_State* L = luaL_newstate();
  must(L != NULL, "luaL_newstate");
  luaL_openlibs(L);
  if (luaL_loadbuffer(L, script, sizeof script - 1, "=work") != 0 || lua_pcall(L, 0, 1, 0) != 0) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
  return L;
}

void work(lua_State* L, int flush) {
  lua_pushvalue(L, 1);
  lua_pushboolean(L, flush);
  const int failed = lua_pcall(L, 1, 1, 0);
  if (failed || lua_tonumber(L, -1) != right_sum) wrong("the workload gave %s", lua_tostring(L, -1));
  else add(&board->progress);
  lua_settop(L, 1);
}

static const struct Mode* find_mode(const char* name) {
  for (const struct Mode* mode = modes; mode->name != NULL; ++mode) {
    if (strcmp(mode->name, name) == 0) return mode;
  }
  fprintf(stderr, "no mode %s\n", name);
  exit(2);
}

static void* beside(void* function) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL); /* only the main thread receives signals */
  void (*run)(void);
  *(void**)&run = function;
  run();
  return NULL;
}

void start_thread(void (*function)(void)) {
  pthread_t thread;
  must(pthread_create(&thread, NULL, beside, *(void**)&function) == 0, "pthread_create");
  pthread_detach(thread);
}

int main(int count, char** words) {
  must(count >= 3, "victim BOARD MODE");
  self = words[0], board_path = words[1];
  if (count > 3) argument = words[3];
  const int file = open(board_path, O_RDWR | O_CLOEXEC);
  must(file >= 0, "the board");
  board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  must(board != MAP_FAILED, "mmap");
  close(file);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* for Yama: luaspy is not an ancestor */
  const struct Mode* mode = find_mode(words[2]);
  if (mode->before != NULL) mode->before();
  lua_State* L = new_lua();
  work(L, 0);
  if (board->began_ns == 0) must(write(1, "READY\n", 6) == 6, "READY"); /* not again after each exec */
  if (mode->beside != NULL) start_thread(mode->beside);
  for (;;) {
    work(L, mode->flush);
    if (mode->between != NULL) mode->between();
  }
}
