/* What the modes of victim.c have in common. */
#ifndef LUASPY_FAULTS_VICTIM_H
#define LUASPY_FAULTS_VICTIM_H

#include "board.h"

struct lua_State;

struct Mode {
  const char* name;
  void (*before)(void);  /* before Lua works */
  void (*beside)(void);  /* forever on its own thread */
  void (*between)(void); /* on the main thread, after each workload */
  int flush;             /* LuaJIT: each workload flushes all traces */
};
extern const struct Mode modes[]; /* ends with a NULL name */

extern struct Board* board;
extern const char *self, *board_path, *argument;

void add(uint64_t* number);
void wrong(const char* format, ...) __attribute__((format(printf, 1, 2)));
void must(int holds, const char* what);
uint64_t now_ns(void);
void pause_us(long us);
void start_thread(void (*function)(void));
struct lua_State* new_lua(void);
void work(struct lua_State* L, int flush);

/* modes.c: processes, threads, memory. */
void new_threads(void), children(void), execs_from_main(void), thread_that_execs(void), busy_thread(void),
    many_threads_and_exec(void), count_exec(void);
void maps_and_unmaps(void), runs_out_of_memory(void), toggles_dumpable(void), toggles_user(void), ends_soon(void),
    blocked_threads(void), short_waits(void);
/* signals.c */
void watch_queue(void), queue_signals(void), start_timer(void), check_timer(void), stop_worker(void),
    be_stopped_by_parent(void), be_waited_for(void);
/* traps.c */
void watch_urgent(void), send_urgent(void), set_breakpoints(void), count_by_breakpoints(void), sleeps_a_little(void);

#endif
