/* What a Lua that truth.sh has built tells about itself. Included before everything else in ldo.c and lvm.c. */
#ifndef luaspy_truth_h
#define luaspy_truth_h

struct luaspy_truth {
  const void* pc; /* the instruction after the one that luaV_execute fetched last */
  const void* ci; /* whose it is; NULL since a function returned: then the innermost call waits at what it called */
  const void* resumed; /* the coroutine that lua_resume or luaD_closeprotected runs; NULL: the main thread */
  const void* guarded; /* the state of the innermost luaD_rawrunprotected; differs from `resumed` at its edges only */
  const void* main;    /* the main thread */
  long entering;       /* a call is being set up: L->ci and its fields are not yet of one piece */
  long collecting;     /* in luaC_step or luaC_fullgc, and in no finalizer that they have called */
};
#ifndef __cplusplus
extern volatile struct luaspy_truth luaspy_truth;

/* luaV_execute has fetched an instruction. In assembler, so that the compiler keeps no register for the address of
 * luaspy_truth in the loop: its registers are to be where they are in an untouched build. */
#define luaspy_fetched(next, call) \
  __asm__ volatile("mov %0, luaspy_truth(%%rip)\n\tmov %1, luaspy_truth+8(%%rip)" : : "r"(next), "r"(call))
#endif

#endif
