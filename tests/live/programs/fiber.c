/* fiber: Lua on a stack that was started by assembly without call frame information, as in fiber libraries: if the
   function returns, it returns to code that ends the program. The words above that stack look like return addresses.
   Says READY once its Lua runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

void begin_fiber(void* stack, void (*function)(void));
__asm__(
    ".text\n"
    ".globl begin_fiber\n"
    ".type begin_fiber, @function\n"
    "begin_fiber:\n"
    "  movq %rdi, %rsp\n"
    "  movq %rsi, %rbx\n"
    "  leaq 2f(%rip), %rbp\n"
    "1:\n"
    "  push %rbp\n"
    "  jmp *%rbx\n"
    "2:\n"
    "  xorq %rdi, %rdi\n"
    "  call _exit@PLT\n"
    "  hlt\n"
    ".size begin_fiber, . - begin_fiber\n");

static int started(lua_State* L) {
  (void)L;
  puts("READY");
  fflush(stdout);
  return 0;
}

static void run(void) {
  static const char code[] =
      "local function leaf(x) for i = 1, 1000 do x = (x + i) % 1024 end return x end\n"
      "local function body() local x = 0 started() while true do x = leaf(x) end end\n"
      "body()\n";
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, started);
  lua_setglobal(L, "started");
  if (luaL_loadbuffer(L, code, strlen(code), "=fiber") != 0 || lua_pcall(L, 0, 0, 0) != 0)
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
}

__attribute__((noinline)) static void* return_address(void) { return __builtin_return_address(0); }

int main(void) {
  enum { stack = 1 << 18, above = 1 << 12 };
  char* lowest = mmap(NULL, stack + above, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  size_t i;
  if (lowest == MAP_FAILED) return 1;
  for (i = 0; i < above / sizeof(void*); ++i) ((void**)(lowest + stack))[i] = return_address();
  begin_fiber(lowest + stack, run);
  return 0;
}
