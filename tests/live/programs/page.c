/* A host that draws pages, in functions whose names look like Lua's, beside those of a Lua that is linked into it. Says
 * READY, and works forever. */
#include <stdio.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char code[] =
    "local numbers = {}\n"
    "local function sort() for i = 1, 2000 do numbers[i] = (i * 7919) % 10007 end table.sort(numbers) end\n"
    "local function replace() return (('a-b '):rep(2000):gsub('%a%-', '%0+')) end\n"
    "ready() while true do page() sort() replace() end\n";

static volatile unsigned sink;
static int page(lua_State* L);

#define SAME_WORK_BUT_OTHER_CODE(n) \
  for (unsigned i = 0; i < 300000; ++i) sink += i % (n)

int luaopen_app(lua_State* L);
__attribute__((noinline)) int luaopen_app(lua_State* L) {
  lua_pushcfunction(L, page);
  return 1;
}
void app_lua_render(void);
__attribute__((noinline)) void app_lua_render(void) { SAME_WORK_BUT_OTHER_CODE(7); }
void app_draw(void);
__attribute__((noinline)) void app_draw(void) { SAME_WORK_BUT_OTHER_CODE(5); }
static __attribute__((noinline)) void smooth(void) { SAME_WORK_BUT_OTHER_CODE(3); }
void lua_page_finish(void);
__attribute__((noinline)) void lua_page_finish(void) { SAME_WORK_BUT_OTHER_CODE(9); }

static int page(lua_State* L) {
  (void)L;
  app_lua_render();
  app_draw();
  smooth();
  lua_page_finish();
  return 0;
}

static int ready(lua_State* L) {
  (void)L;
  puts("READY");
  fflush(stdout);
  return 0;
}

int main(void) {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "ready", ready);
  luaopen_app(L);
  lua_setglobal(L, "page");
  if (luaL_loadstring(L, code) || lua_pcall(L, 0, 0, 0)) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  return 1;
}
