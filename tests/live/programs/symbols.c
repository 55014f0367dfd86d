/* A program with a great many symbols, and a Lua that calls through different ones all the time: symbols.
 * -DSYMBOLS=400000 sets their number. */

#include <stdio.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

#ifndef SYMBOLS
#define SYMBOLS 20000
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* Functions of 64 bytes with a name each; every second one is local. int filler_N(int (*function)(long), long argument)
 * calls the function. */
__asm__(
  ".text\n"
  ".altmacro\n"
  ".macro one_filler number\n"
  "  .p2align 6\n"
  "  .type filler_\\number, @function\n"
  "  .if \\number & 1\n  .globl filler_\\number\n  .endif\n"
  "filler_\\number:\n"
  "  .cfi_startproc\n  sub $8, %rsp\n  .cfi_def_cfa_offset 16\n  mov %rdi, %rax\n  mov %rsi, %rdi\n  call *%rax\n  add $8, %rsp\n  .cfi_def_cfa_offset 8\n  ret\n  .cfi_endproc\n"
  "  .size filler_\\number, . - filler_\\number\n"
  ".endm\n"
  ".set filler_count, 0\n"
  ".rept " TEXT(SYMBOLS) "\n"
  "  one_filler %filler_count\n"
  "  .set filler_count, filler_count + 1\n"
  ".endr\n"
  /* The function on the stack: a place with a local, a weak and a global name, within a longer local symbol. */
  "  .type around_it, @function\n  .type a_weak_name, @function\n  .type a_global_name, @function\n  .type a_local_name, @function\n"
  "  .weak a_weak_name\n  .globl a_global_name\n  .globl call_from_symbols\n"
  "around_it:\n  nop\n"
  "a_local_name:\na_weak_name:\na_global_name:\ncall_from_symbols:\n"
  "  .cfi_startproc\n  sub $8, %rsp\n  .cfi_def_cfa_offset 16\n  call *%rdi\n  add $8, %rsp\n  .cfi_def_cfa_offset 8\n  ret\n  .cfi_endproc\n"
  "  .size a_local_name, . - a_local_name\n  .size a_weak_name, . - a_weak_name\n  .size a_global_name, . - a_global_name\n"
  "  .size around_it, . - around_it\n"
  "  .noaltmacro\n");

int call_from_symbols(void (*function)(void));
extern char filler_0[];
enum { filler_size = 64, depth = 20 };

static volatile unsigned long sum;

static void busy(void) {
  unsigned long i;
  for (i = 0; i < 100000; ++i) sum += i;
}

static int descend(long left) {
  static unsigned long long random = 1;
  int (*filler)(int (*)(long), long);
  random = random * 6364136223846793005u + 1442695040888963407u;
  filler = (int (*)(int (*)(long), long))(filler_0 + filler_size * ((random >> 33) % SYMBOLS));
  if (left == 0) return call_from_symbols(busy), 0;
  return filler(descend, left - 1) + 1;
}

static int work(lua_State* L) {
  lua_pushinteger(L, descend(depth));
  return 1;
}

int main(void) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, work);
  lua_setglobal(L, "work");
  puts("READY");
  fflush(stdout);
  return luaL_loadstring(L, "local here = 42 while true do work() here = here + 1 end") != 0 ||
         lua_pcall(L, 0, 0, 0) != 0;
}
