// Runs Lua for MS of CPU time, then executes itself again, COUNT times in all.
//   exec_chain MS COUNT
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char* const code =
    "local seconds = ...\n"
    "local function work() local sum = 0 for i = 1, 300 do sum = sum + i % 7 end return sum end\n"
    "local start = os.clock()\n"
    "while os.clock() - start < seconds do work() end\n";

int main(int count, char** words) {
  if (count != 3) return 2;
  lua_State* const L = luaL_newstate();
  luaL_openlibs(L);
  if (luaL_loadstring(L, code) != 0) return 1;
  lua_pushnumber(L, atof(words[1]) / 1000);
  if (lua_pcall(L, 1, 0, 0) != 0) return 1;
  char left[16];
  snprintf(left, sizeof left, "%d", atoi(words[2]) - 1);
  if (atoi(left) <= 0) return 0;
  execl(words[0], words[0], words[1], left, (char*)NULL);
  return 1;
}
