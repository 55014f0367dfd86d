/* Runs an interpreter that was built as a shared object, loaded only after this program has started:
   dlopened LIBLUA.SO script.lua args */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* lua = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  int (*lua_main)(int, char**) = lua ? (int (*)(int, char**))dlsym(lua, "lua_main") : NULL;
  if (!lua_main) {
    fprintf(stderr, "dlopened: %s\n", dlerror());
    return 1;
  }
  return lua_main(argc - 1, argv + 1);
}
