#include "luastate/native_functions.h"

#include <catch2/catch.hpp>

namespace luaspy {

TEST_CASE("functions of Lua's sources are known by their names", "[unit]") {
  for (const char* name : {"lua_pcallk", "luaL_tolstring", "luaV_execute", "luaH_getshortstr", "luaopen_string",
                           "lj_gc_step", "luaJIT_setmode", "mud_lua_gettop", "luaH_resize.cold"})
    CHECK(is_lua_name(name));
  for (const char* name :
       {"main", "lua", "luaRedisGenericCommand", "luaCallFunction", "nlua_exec", "l_alloc", "ljmp", ""})
    CHECK(!is_lua_name(name));
}

}  // namespace luaspy
