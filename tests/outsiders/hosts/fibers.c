// Fibers on stacks from malloc, each with a Lua of its own. They take turns where Lua asks for the time: all but one
// are suspended in a C function that Lua called.

#include <time.h>
#include <ucontext.h>

#include "states.h"

enum { fibers = 5, stack_size = 256 * 1024 };

static struct {
  ucontext_t context;
  double used, since;  // s of CPU time: before it got its turn, and when that was
} all[fibers];
static int current;

static double cpu_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// The time that this fiber has used, after a turn of each other one.
static int clock_of_fiber(lua_State* L) {
  const int own = current;
  all[own].used += cpu_time() - all[own].since;
  current = (own + 1) % fibers;
  all[current].since = cpu_time();
  swapcontext(&all[own].context, &all[current].context);
  lua_pushnumber(L, all[own].used);
  return 1;
}

static void work(void) { go(new_state(clock_of_fiber), 1000); }

int main(void) {
  static ucontext_t before;
  for (int i = 0; i < fibers; ++i) {
    getcontext(&all[i].context);
    all[i].context.uc_stack.ss_sp = malloc(stack_size);
    all[i].context.uc_stack.ss_size = stack_size;
    all[i].context.uc_link = &before;
    makecontext(&all[i].context, work, 0);
  }
  all[0].since = cpu_time();
  swapcontext(&before, &all[0].context);
  return 0;
}
