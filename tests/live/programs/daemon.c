/* daemon: Lua that makes itself a daemon: says READY, runs the function `before` until there is a line on standard
   input, then forks twice, and both parents end. The process that is left runs `after` for 0.6 s of CPU time, and ends.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static int is_asked(lua_State* L) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  lua_pushboolean(L, poll(&input, 1, 0) != 0);
  return 1;
}

static int become_daemon(lua_State* L) {
  (void)L;
  if (fork() != 0) _exit(0);
  setsid();
  if (fork() != 0) _exit(0);
  return 0;
}

int main(void) {
  static const char code[] =
      "local function leaf(x) for i = 1, 1000 do x = (x + i) % 1024 end return x end\n"
      "local function before() local x = 0 repeat x = leaf(x) until is_asked() end\n"
      "local function after() local x = 0 while os.clock() < 1.2 do x = leaf(x) end end\n"
      "io.write('READY\\n') io.flush()\n"
      "before() become_daemon() after()\n";
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "is_asked", is_asked);
  lua_register(L, "become_daemon", become_daemon);
  if (luaL_loadbuffer(L, code, strlen(code), "=daemon") != 0 || lua_pcall(L, 0, 0, 0) != 0) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    return 1;
  }
  lua_close(L);
  return 0;
}
