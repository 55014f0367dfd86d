#include "luastate/native_functions.h"

#include <catch2/catch.hpp>

namespace luaspy::native_functions_test {

TEST_CASE("functions of Lua's sources are known by their names", "[unit]") {
  for (const char* name : {"lua_pcallk", "lua_setfenv", "luaL_tolstring", "luaL_openselectedlibs", "luaopen_string"}) {
    CHECK(is_lua_name(name, LuaKind::puc));
    CHECK(is_lua_name(name, LuaKind::luajit));
  }
  for (const char* name : {"luaV_execute", "luaH_getshortstr", "luaH_resize.cold", "luaU_dump.part.0"}) {
    CHECK(is_lua_name(name, LuaKind::puc));
    CHECK(!is_lua_name(name, LuaKind::luajit));
  }
  for (const char* name : {"lj_gc_step", "luaJIT_setmode", "recff_bit64_shift", "luaopen_string_buffer"})
    CHECK(is_lua_name(name, LuaKind::luajit));
  CHECK(!is_lua_name("lj_gc_step", LuaKind::puc));
}

TEST_CASE("functions of a program are not Lua's because of their names", "[unit]") {
  for (const char* name :
       {"main", "lua", "luaRedisGenericCommand", "luaCallFunction", "nlua_exec", "l_alloc", "ljmp", "",
        // Programs name their own functions like Lua's.
        "lua_task_get_subject", "lua_", "lua_pushcolor", "luaL_", "luaL_pushcdata", "luaL_checkvector", "luaopen_app",
        "luaopen_cjson", "luaW_pushvariable", "luaV", "luaV_", "lua_push call", "ngx_http_lua_run_thread",
        "app_lua_render", "app_lua_gettop", "mud_lua_gettop", "mud_luaV_execute"}) {
    INFO(name);
    CHECK(!is_lua_name(name, LuaKind::puc));
    CHECK(!is_lua_name(name, LuaKind::luajit));
  }
  CHECK(!is_lua_name("luaT_pushtuple", LuaKind::luajit));  // Tarantool's; PUC has luaT_ in ltm.c
}

TEST_CASE("source files of Lua are known by their names", "[unit]") {
  for (const char* file : {"lstrlib.c", "lvm.cpp", "src/ltablib.c", "lj_gc.c", "lib_string.c", "ljamalg.c", "lgc.c"})
    CHECK(is_lua_source(file));
  for (const char* file : {"", "lua.c", "luac.c", "main.c", "lstrlib_app.c", "lib_app.c", "lua_cjson.c", "str.c"})
    CHECK(!is_lua_source(file));
}

}  // namespace luaspy::native_functions_test
