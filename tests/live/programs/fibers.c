/* fibers: several fibers in one thread, each with a lua_State, on stacks from malloc that lie side by side. They run by
   turns; those that do not run are suspended in a call of Lua. The fiber number n calls outer_n, inner_n and leaf_n.
   Arguments: how fibers are made, "context" (makecontext), "called" or "pushed" (assembly without call frame
   information: a trampoline that calls the fiber's function, or a return address that nobody calls); "own" (each has a
   global_State) or "shared" (lua_newthread of one). Says READY once each has run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { fibers = 8, stack_size = 48 << 10 };

static struct {
  ucontext_t context;
  void* sp;
  lua_State* L;
} all[fibers];
static ucontext_t main_context;
static void* main_sp;
static int running, with_context;

/* switch_stack(from, to): keeps what a call preserves on the stack that is left. */
void switch_stack(void** from, void* to);
void trampoline(void);
void never_called(void);
__asm__(
    ".text\n"
    ".globl switch_stack, trampoline, never_called\n"
    ".type switch_stack, @function\n"
    "switch_stack:\n"
    "  push %rbx\n"
    "  push %rbp\n"
    "  push %r12\n"
    "  push %r13\n"
    "  push %r14\n"
    "  push %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  pop %r15\n"
    "  pop %r14\n"
    "  pop %r13\n"
    "  pop %r12\n"
    "  pop %rbp\n"
    "  pop %rbx\n"
    "  ret\n"
    ".size switch_stack, . - switch_stack\n"
    ".type trampoline, @function\n"
    "trampoline:\n"
    "  movq %r12, %rdi\n"
    "  call *%rbx\n"
    "  ud2\n"
    ".size trampoline, . - trampoline\n"
    ".type never_called, @function\n"
    "never_called:\n"
    "  ud2\n"
    ".size never_called, . - never_called\n");

static int next_fiber(lua_State* L) {
  const int from = running;
  (void)L;
  running = (running + 1) % fibers;
  if (with_context) swapcontext(&all[from].context, &all[running].context);
  else switch_stack(&all[from].sp, all[running].sp);
  return 0;
}

static int started(lua_State* L) {
  (void)L;
  puts("READY");
  fflush(stdout);
  return 0;
}

static void run(void) {
  static const char code[] =
      "local function leaf_%d(x) for i = 1, 1000 do x = (x + i) %% 1024 end return x end\n"
      "local function inner_%d(x) for i = 1, 20 do x = leaf_%d(x) end next_fiber() return x + 1 end\n"
      "local function outer_%d() local x = 0 while true do x = inner_%d(x) + 1 if %d == 0 and started then started() "
      "started = nil end end end\n"
      "outer_%d()\n";
  const int n = running;
  lua_State* const L = all[n].L;
  char text[sizeof code + 64], name[16];
  snprintf(text, sizeof text, code, n, n, n, n, n, n, n);
  snprintf(name, sizeof name, "=fiber_%d", n);
  if (luaL_loadbuffer(L, text, strlen(text), name) != 0 || lua_pcall(L, 0, 0, 0) != 0)
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
  exit(1);
}

static lua_State* new_state(void) {
  lua_State* const L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, next_fiber);
  lua_setglobal(L, "next_fiber");
  lua_pushcfunction(L, started);
  lua_setglobal(L, "started");
  return L;
}

int main(int argc, char** argv) {
  lua_State* const shared = argc == 3 && strcmp(argv[2], "shared") == 0 ? new_state() : NULL;
  int i;
  if (argc != 3) return 2;
  with_context = strcmp(argv[1], "context") == 0;
  for (i = 0; i < fibers; ++i) {
    char* const stack = malloc(stack_size);
    void** top = (void**)(((uintptr_t)stack + stack_size) & ~(uintptr_t)15);
    all[i].L = shared != NULL ? lua_newthread(shared) : new_state();
    if (with_context) {
      getcontext(&all[i].context);
      all[i].context.uc_stack.ss_sp = stack;
      all[i].context.uc_stack.ss_size = stack_size;
      all[i].context.uc_link = NULL;
      makecontext(&all[i].context, run, 0);
      continue;
    }
    if (strcmp(argv[1], "called") == 0) *--top = (void*)trampoline;
    else *--top = (void*)never_called, *--top = (void*)run;
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    top[5] = (void*)run; /* rbx */
    all[i].sp = top;
  }
  if (with_context) swapcontext(&main_context, &all[0].context);
  else switch_stack(&main_sp, all[0].sp);
  return 1;
}
