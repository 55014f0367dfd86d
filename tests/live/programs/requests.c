/* requests SCRIPT: serves requests without end. Each has a Lua of its own, which loads the script under the name of the
   request, "=request0001" to "=request0999", calls it in a coroutine, and is closed. */
#include <stdio.h>
#include <stdlib.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

int main(int count, char** arguments) {
  static char text[4096];
  FILE* const file = count == 2 ? fopen(arguments[1], "r") : NULL;
  if (file == NULL) return 1;
  const size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  puts("READY");
  fflush(stdout);
  for (int number = 1;; number = number % 999 + 1) {
    char name[32];
    snprintf(name, sizeof name, "=request%04d", number);
    lua_State* const L = luaL_newstate();
    luaL_openlibs(L);
    lua_getglobal(L, "coroutine");
    lua_getfield(L, -1, "wrap");
    if (luaL_loadbuffer(L, text, size, name) || lua_pcall(L, 1, 1, 0) || lua_pcall(L, 0, 0, 0)) {
      fprintf(stderr, "%s\n", lua_tostring(L, -1));
      return 1;
    }
    lua_close(L);
  }
}
