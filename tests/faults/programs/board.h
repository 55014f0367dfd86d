/* What a target reports: memory that it shares with the campaign, through a file that outlives exec. For C
 * and C++. */
#ifndef LUASPY_FAULTS_BOARD_H
#define LUASPY_FAULTS_BOARD_H

#include <stdint.h>

struct Board {
  uint64_t progress;    /* Lua workloads done, each with the right result */
  uint64_t events;      /* of the mode: threads, children, execs, ... */
  uint64_t wrong;       /* results that differ from those without luaspy */
  uint64_t calls;       /* short, sleeps: system calls that blocked */
  uint64_t interrupted; /* short, sleeps: those that ended with EINTR */
  uint64_t began_ns;    /* exec: when, CLOCK_MONOTONIC */
  uint64_t longest_ns;  /* exec: from the call to main() */
  uint64_t worker;      /* stops: the process that is stopped */
  char what[200];       /* the first wrong result, in words */
};

#endif
