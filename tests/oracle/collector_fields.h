#pragma once
// Compares with offsetof those fields of a row that no comparison of names and lines depends on.
// Included after Lua's own headers.

#include <cstddef>

#include "compare.h"
#include "luastate/puc/layouts.h"

inline void expect_field(const char* name, std::size_t expected, luaspy::Offset got) {
  expect_at(name, static_cast<int>(expected), static_cast<int>(got), 0, 0);
}

// The collector's fields.
inline void compare_collector_fields(const luaspy::Layout& row) {
  expect_field("G_gcstate", offsetof(global_State, gcstate), row.G_gcstate);
  expect_field("G_currentwhite", offsetof(global_State, currentwhite), row.G_currentwhite);
  expect_field("L_hookmask", offsetof(lua_State, hookmask), row.L_hookmask);
  expect_field("next, tt, marked", 9, offsetof(lua_State, marked));
#if LUA_VERSION_NUM == 501
  expect_field("G_allgc", offsetof(global_State, rootgc), row.G_allgc);
#else
  expect_field("G_allgc", offsetof(global_State, allgc), row.G_allgc);
  expect_field("G_GCdebt", offsetof(global_State, GCdebt), row.G_GCdebt);
#endif
#if LUA_VERSION_NUM >= 505
  expect_field("G_totalbytes", offsetof(global_State, GCtotalbytes), row.G_totalbytes);
#else
  expect_field("G_totalbytes", offsetof(global_State, totalbytes), row.G_totalbytes);
#endif
#if LUA_VERSION_NUM != 501 && LUA_VERSION_NUM != 503
  expect_field("G_gckind", offsetof(global_State, gckind), row.G_gckind);
#endif
#if LUA_VERSION_NUM == 502 || LUA_VERSION_NUM == 503
  expect_field("ci_extra", offsetof(CallInfo, extra), row.ci_extra);
#else
  expect_field("ci_extra", luaspy::no_field, row.ci_extra);
#endif
}
