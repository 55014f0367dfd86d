/* What a Lua that truth.sh has built reports about itself. Included before everything else in ldo.c and lvm.c. */
#ifndef luaspy_truth_h
#define luaspy_truth_h

struct luaspy_truth {
  const void* pc; /* the instruction after the one that luaV_execute fetched last */
  const void* ci; /* its call; NULL since a function returned: then the innermost call is at its call instruction */
  const void* resumed; /* the coroutine that lua_resume or luaD_closeprotected runs; NULL: the main thread */
  const void* guarded; /* the state of the innermost luaD_rawrunprotected; differs from `resumed` only at its edges */
  const void* main;    /* the main thread */
  long entering;       /* a call is being set up: L->ci and its fields are not yet consistent */
  long collecting;     /* in luaC_step or luaC_fullgc, but not in a finalizer that they have called */
};
#ifndef __cplusplus
extern volatile struct luaspy_truth luaspy_truth;

/* luaV_execute has fetched an instruction. In assembler, so that the compiler does not keep the address of luaspy_truth
 * in a register in the loop: the use of registers must be the same as in an unmodified build. */
#define luaspy_fetched(next, call) \
  __asm__ volatile("mov %0, luaspy_truth(%%rip)\n\tmov %1, luaspy_truth+8(%%rip)" : : "r"(next), "r"(call))
#endif

#endif
