/* waiting: a Lua function waits in epoll_wait for its standard input, like an idle server. Prints "READY 0"; when its
   input ends it prints "EINTR N", how often something from outside has ended its wait. Needs Lua 5.4. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static int wait_for_input(lua_State* L) {
  struct epoll_event event = {EPOLLIN, {0}};
  const int epoll = epoll_create1(0);
  int interrupted = 0;
  if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0) return luaL_error(L, "no epoll");
  while (epoll_wait(epoll, &event, 1, -1) < 0) {
    if (errno != EINTR) return luaL_error(L, "epoll_wait");
    ++interrupted;
  }
  lua_pushinteger(L, interrupted);
  return 1;
}

int main(void) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "wait", wait_for_input);
  puts("READY 0");
  fflush(stdout);
  if (luaL_dostring(L, "local function serve() local n = wait() return n end return (serve())") != LUA_OK) {
    fprintf(stderr, "waiting: %s\n", lua_tostring(L, -1));
    return 1;
  }
  printf("EINTR %d\n", (int)lua_tointeger(L, -1));
  return 0;
}
