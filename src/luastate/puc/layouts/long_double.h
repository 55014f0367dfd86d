#pragma once
// Lua built with long double for its numbers (luaconf.h: LUA_NUMBER; from 5.3 on LUA_FLOAT_TYPE). On
// x86-64 a Value has 16 bytes then, and is aligned to 16, so a TValue has 32. offsetof() over the sources of
// 5.1.5, 5.2.4, 5.3.0, 5.3.1, 5.3.3, 5.3.6, 5.4.2, 5.4.4, 5.4.9 and 5.5.1 with that type; for the releases
// between them, and 5.2.0 and 5.4.0, what the stock row says, moved as in these.

#include "luastate/puc/layouts/lua51.h"
#include "luastate/puc/layouts/lua52.h"
#include "luastate/puc/layouts/lua53.h"
#include "luastate/puc/layouts/lua54.h"
#include "luastate/puc/layouts/lua55.h"

namespace luaspy::layout_rows {

constexpr void move(Offset& field, int by) {
  if (field != no_field) field = static_cast<Offset>(field + by);
}

// What is the same in all releases. The registry is the first TValue of a global_State, and most fields
// are behind it.
constexpr Layout wide(Layout row, std::string_view name, int behind_registry) {
  row.name = name;
  row.value_size = 32, row.value_tt = 16;
  const bool has_small_keys = row.tt_size == 1;
  row.node_key = 32, row.node_key_tt = has_small_keys ? 17 : 48, row.node_size = has_small_keys ? 48 : 64;
  row.heap.upvalue_size = 64;
  for (Offset* const field :
       {&row.G_allgc, &row.G_currentwhite, &row.G_gcstate, &row.G_gckind, &row.G_mainthread, &row.heap.G_finobj,
        &row.heap.G_tobefnz, &row.heap.G_fixedgc, &row.heap.G_buffsize, &row.heap.G_mt, &row.heap.G_tmname}) {
    if (*field > row.G_registry) move(*field, behind_registry);
  }
  return row;
}

// Two TValues in lua_State, and uvhead in global_State.
inline constexpr Layout lua51_long_double = [] {
  Layout row = wide(lua51, "5.1.0-5.1.5 with long double", 16);
  row.L_size = row.heap.thread_size = 224;
  row.L_gt = 128, row.L_errorJmp = 208, row.heap.L_openupval = 192;
  row.cclosure_upvalue = 48;
  row.heap.G_mt = 272, row.heap.G_tmname = 344, row.heap.global_size = 704;
  return row;
}();

// global_State has an UpVal, uvhead.
constexpr Layout wide52(Layout row, std::string_view name) {
  row = wide(row, name, 16);
  for (Offset* const field : {&row.heap.G_buffsize, &row.G_mainthread, &row.heap.G_tmname, &row.heap.G_mt})
    move(*field, 24);
  return row;
}
inline constexpr Layout lua52_long_double = [] {
  Layout row = wide52(lua52, "5.2.1-5.2.4 with long double");
  row.heap.global_size = 752;
  return row;
}();
inline constexpr Layout lua520_long_double = [] {
  Layout row = wide52(lua520, "5.2.0 with long double");
  // The registry is at 56, which is no multiple of 16.
  row.G_registry = 64;
  for (Offset* const field :
       {&row.G_allgc, &row.G_currentwhite, &row.G_gcstate, &row.G_gckind, &row.G_mainthread, &row.heap.G_finobj,
        &row.heap.G_tobefnz, &row.heap.G_buffsize, &row.heap.G_tmname, &row.heap.G_mt})
    move(*field, 8);
  row.heap.global_size = 736;
  return row;
}();

// Udata has a Value; from 5.3.2 on the alignment of a string's characters is that of a number, too
// (llimits.h, L_Umaxalign).
constexpr Layout wide53(Layout row, std::string_view name, std::uint16_t global_size) {
  row = wide(row, name, 16);
  row.heap.upvalue_size = 48;
  row.udata_memory = 48;
  row.heap.global_size = global_size;
  return row;
}
inline constexpr Layout lua530_long_double = wide53(lua530, "5.3.0 with long double", 752);
inline constexpr Layout lua531_long_double = wide53(lua531, "5.3.1 with long double", 1776);
inline constexpr Layout lua532_long_double = [] {
  Layout row = wide53(lua532, "5.3.2-5.3.3 with long double", 1584);
  row.string_data = 32;
  return row;
}();
inline constexpr Layout lua53_long_double = [] {
  Layout row = wide53(lua53, "5.3.4-5.3.6 with long double", 1584);
  row.string_data = 32;
  return row;
}();

// global_State has a second TValue, nilvalue.
constexpr Layout wide54(Layout row, std::string_view name, std::uint16_t global_size) {
  row = wide(row, name, 32);
  row.udata_uv = 48;
  row.heap.upvalue_next = 32;
  row.heap.global_size = global_size;
  return row;
}
inline constexpr Layout lua540_long_double = wide54(lua540, "5.4.0 with long double", 1648);
inline constexpr Layout lua541_long_double = wide54(lua541, "5.4.1 with long double", 1664);
inline constexpr Layout lua542_long_double = wide54(lua542, "5.4.2 with long double", 1664);
inline constexpr Layout lua54_long_double = wide54(lua54, "5.4.3-5.4.9 with long double", 1664);
inline constexpr Layout lua55_long_double = wide54(lua55, "5.5.0-5.5.1 with long double", 1664);

}  // namespace luaspy::layout_rows
