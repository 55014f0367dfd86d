/* threads MODE: ways for a host to run Lua that the lua program does not use. Says READY once all its Lua functions
   run; they never return. Thread K (1 to 4) runs the function of line 2K of chunk "threads", which calls leaf_K of line
   2K-1.
     own          four threads, a global state each
     neighbours   the same, with their stacks side by side in one mapping and guard pages between them, as glibc 2.42
                  allocates them; if the kernel cannot guard pages inside a mapping (before Linux 6.13), prints a line
                  about that before READY
     shared       four threads, a coroutine each of one global state (their functions neither allocate nor are compiled)
     nested       one thread: Lua of state a calls a C function that runs Lua of state b
     unprotected  like one thread of "own", by lua_call without anything around it that catches errors
     resume       the same, in a coroutine that the host resumes while the main one never ran
     none         Lua is linked in, but no state is created */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { threads = 4 };
static atomic_int running;

static int started(lua_State* L) {
  (void)L;
  ++running;
  return 0;
}

static void check(lua_State* L, int status) {
  if (status == 0) return;
  fprintf(stderr, "%s\n", lua_tostring(L, -1));
  exit(1);
}

static void load(lua_State* L, const char* code, const char* chunk) {
  check(L, luaL_loadbuffer(L, code, strlen(code), chunk));
  check(L, lua_pcall(L, 0, 0, 0));
}

static lua_State* new_state(void) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, started);
  lua_setglobal(L, "started");
  return L;
}

static lua_State* new_worker_state(void) {
  char code[1024] = "";
  lua_State* L = new_state();
  int k;
  for (k = 1; k <= threads; ++k)
    sprintf(code + strlen(code),
            "function leaf_%d(x) for i = 1, 1000 do x = (x + i) %% 1024 end return x end\n"
            "function thread_%d() local x = 0 started() while true do x = leaf_%d(x) end end\n",
            k, k, k);
  load(L, code, "=threads");
  return L;
}

static lua_State* with_function(lua_State* L, int k) {
  char name[32];
  sprintf(name, "thread_%d", k);
  lua_getglobal(L, name);
  return L;
}

static void* protected(void* L) {
  check(L, lua_pcall(L, 0, 0, 0));
  return NULL;
}

/* Its frames are in several pages of the stack. */
static void* protected_deep(void* L) {
  volatile char room[5 * 4096];
  room[0] = 1;
  protected(L);
  return room[0] != 0 ? NULL : L;
}

static void* unprotected(void* L) {
  lua_call(L, 0, 0);
  return NULL;
}

static void* resumed(void* L) {
#if LUA_VERSION_NUM >= 504
  int results;
  check(L, lua_resume(L, NULL, 0, &results));
#elif LUA_VERSION_NUM >= 502
  check(L, lua_resume(L, NULL, 0));
#else
  check(L, lua_resume(L, 0));
#endif
  return NULL;
}

static lua_State* state_b;

static int enter_b(lua_State* L) {
  (void)L;
  lua_getglobal(state_b, "outer_b");
  check(state_b, lua_pcall(state_b, 0, 0, 0));
  return 0;
}

static void* nested(void* L) {
  state_b = new_state();
  load(
      state_b,
      "local function leaf_b() for i = 1, 1000 do end end\nfunction outer_b() started() while true do leaf_b() end end",
      "=b");
  load(L, "local function inner_a(enter) enter() return 1 end\nfunction outer_a() return inner_a(enter_b) + 1 end",
       "=a");
  lua_pushcfunction(L, enter_b);
  lua_setglobal(L, "enter_b");
  lua_getglobal(L, "outer_a");
  check(L, lua_pcall(L, 0, 0, 0));
  return NULL;
}

/* The stack of thread K (1 to `threads`): above a guard page, in a mapping that holds the stacks of all threads. */
static pthread_attr_t* neighbouring_stack(pthread_attr_t* attributes, int k) {
  enum { guard_install = 102 /* MADV_GUARD_INSTALL, asm-generic/mman-common.h */, page = 4096, size = 1 << 18 };
  static char* all;
  if (all == NULL)
    all = mmap(NULL, threads * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
               -1, 0);
  if (all == MAP_FAILED) exit(1);
  char* lowest = all + (k - 1) * size;
  if (madvise(lowest, page, guard_install) != 0) {
    puts("this kernel cannot guard pages inside a mapping");
    if (mprotect(lowest, page, PROT_NONE) != 0) exit(1);
  }
  pthread_attr_init(attributes);
  if (pthread_attr_setstack(attributes, lowest + page, size - page) != 0) exit(1);
  return attributes;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  pthread_t thread;
  pthread_attr_t attributes;
  int k, expected = 1;
  if (strcmp(mode, "own") == 0 || strcmp(mode, "neighbours") == 0 || strcmp(mode, "shared") == 0) {
    lua_State* shared = new_worker_state();
    load(shared, "if jit then jit.off() end", "=setup"); /* only one thread at a time may run machine code */
    expected = threads;
    for (k = 1; k <= threads; ++k) {
      lua_State* L = *mode == 's' ? lua_newthread(shared) : new_worker_state();
      if (*mode == 'n')
        pthread_create(&thread, neighbouring_stack(&attributes, k), protected_deep, with_function(L, k));
      else pthread_create(&thread, NULL, protected, with_function(L, k));
    }
  } else if (strcmp(mode, "nested") == 0) {
    pthread_create(&thread, NULL, nested, new_state());
  } else if (strcmp(mode, "unprotected") == 0) {
    pthread_create(&thread, NULL, unprotected, with_function(new_worker_state(), 1));
  } else if (strcmp(mode, "resume") == 0) {
    pthread_create(&thread, NULL, resumed, with_function(lua_newthread(new_worker_state()), 1));
  } else if (strcmp(mode, "none") == 0) {
    if (getenv("NEVER_SET")) new_state();
    puts("READY");
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
  } else {
    return 2;
  }
  while (running < expected) sched_yield();
  puts("READY");
  fflush(stdout);
  pthread_join(thread, NULL);
  return 0;
}
