/* occupied WHAT...: Lua allocates, while the program uses what luaspy alloc needs. SIGURG, SIGWINCH: it handles that
   signal; blocked: it blocks both; breakpoints: it takes all debug registers of its thread. Says READY. When it
   receives SIGUSR1, it prints how many of these signals it has received, and ends. */
#define _GNU_SOURCE
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static volatile sig_atomic_t received, ends;

static void count(int signal) { (void)signal, ++received; }
static void end(int signal) { (void)signal, ends = 1; }

static int is_over(lua_State* L) {
  lua_pushboolean(L, ends);
  return 1;
}

__attribute__((noinline)) static void never_called(void) { __asm__ volatile(""); }

static int take_debug_registers(void) {
  struct perf_event_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_X;
  attributes.bp_addr = (uintptr_t)&never_called;
  attributes.bp_len = sizeof(long);
  attributes.exclude_kernel = 1;
  int taken = 0;
  while (syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0) ++taken;
  return taken;
}

int main(int argc, char** argv) {
  signal(SIGUSR1, end);
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "SIGURG") == 0) signal(SIGURG, count);
    if (strcmp(argv[i], "SIGWINCH") == 0) signal(SIGWINCH, count);
    if (strcmp(argv[i], "breakpoints") == 0 && take_debug_registers() == 0) return 3;
    if (strcmp(argv[i], "blocked") == 0) {
      sigset_t both;
      sigemptyset(&both), sigaddset(&both, SIGURG), sigaddset(&both, SIGWINCH);
      sigprocmask(SIG_BLOCK, &both, NULL);
    }
  }
  lua_State* const L = luaL_newstate();
  if (L == NULL) return 2;
  luaL_openlibs(L);
  lua_register(L, "is_over", is_over);
  puts("READY");
  fflush(stdout);
  if (luaL_loadstring(L,
                      "local function makes() local all = {} for i = 1, 200 do all[i] = {i} end return #all end\n"
                      "while not is_over() do assert(makes() == 200) end") != 0 ||
      lua_pcall(L, 0, 0, 0) != 0)
    return 1;
  sigset_t pending;
  sigpending(&pending);
  printf("received %d pending %d\n", (int)received, sigismember(&pending, SIGURG) + sigismember(&pending, SIGWINCH));
  never_called();
  return 0;
}
