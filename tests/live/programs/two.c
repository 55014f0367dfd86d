/* two LIBRARY LIBRARY: two shared libraries with a Lua each, which do not see each other's symbols. Lua of the first
   calls a C function that runs Lua of the second, forever. Says READY from there. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State* L);

/* lua_pcall and lua_pcallk; a number is as wide as a pointer in all of them. */
struct lua {
  lua_State* (*newstate)(void);
  void (*openlibs)(lua_State* L);
  int (*loadstring)(lua_State* L, const char* code);
  int (*pcall)(lua_State* L, int arguments, int results, int handler, long context, void* continuation);
  void (*pushcclosure)(lua_State* L, lua_CFunction function, int upvalues);
  const char* (*tolstring)(lua_State* L, int index, size_t* length);
  void (*settop)(lua_State* L, int index);
};
static struct lua first, second;
static lua_State* second_state;

static void* symbol(void* library, const char* name, const char* other) {
  void* address = dlsym(library, name);
  if (address == NULL) address = dlsym(library, other);
  if (address != NULL) return address;
  fprintf(stderr, "no %s\n", name);
  exit(1);
}

static void load(struct lua* lua, const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  *(void**)&lua->newstate = symbol(library, "luaL_newstate", "");
  *(void**)&lua->openlibs = symbol(library, "luaL_openlibs", "");
  *(void**)&lua->loadstring = symbol(library, "luaL_loadstring", "");
  *(void**)&lua->pcall = symbol(library, "lua_pcall", "lua_pcallk");
  *(void**)&lua->pushcclosure = symbol(library, "lua_pushcclosure", "");
  *(void**)&lua->tolstring = symbol(library, "lua_tolstring", "");
  *(void**)&lua->settop = symbol(library, "lua_settop", "");
}

static void check(struct lua* lua, lua_State* L, int status) {
  if (status == 0) return;
  fprintf(stderr, "%s\n", lua->tolstring(L, -1, NULL));
  exit(1);
}

static int enter_second(lua_State* L) {
  (void)L;
  check(&second, second_state,
        second.loadstring(second_state,
                          "local function leaf_2(n) local x = 0 for i = 1, n do x = (x + i) % 1009 end return x end\n"
                          "local function loop_2() while true do leaf_2(1000) end end\n"
                          "io.stdout:write('READY\\n') io.stdout:flush()\n"
                          "loop_2()"));
  check(&second, second_state, second.pcall(second_state, 0, 0, 0, 0, NULL));
  return 0;
}

int main(int argc, char** argv) {
  lua_State* L;
  if (argc != 3) return 2;
  load(&first, argv[1]);
  load(&second, argv[2]);
  L = first.newstate();
  second_state = second.newstate();
  first.openlibs(L);
  second.openlibs(second_state);
  check(&first, L,
        first.loadstring(L,
                         "local enter = ...\nlocal function inner_1() enter() return 1 end\nlocal function outer_1() "
                         "return inner_1() + 1 end\nouter_1()"));
  first.pushcclosure(L, enter_second, 0);
  check(&first, L, first.pcall(L, 1, 0, 0, 0, NULL));
  return 0;
}
