#pragma once
// Compares what a layout row says about values, tables, closures and userdata with the compiler's
// view of the structures. Must be included after Lua's headers: names that only some releases have
// are used in templates.

#include <cstddef>
#include <string_view>

#include "compare.h"
#include "luastate/puc/layouts.h"

namespace value_fields {

using luaspy::Layout;
using luaspy::no_field;

inline void expect(const char* what, std::size_t expected, std::size_t got) {
  expect_at(what, static_cast<int>(expected), static_cast<int>(got), 0, 0);
}

template <typename T>
void compare_table(const Layout& layout) {
  expect("table_array", offsetof(T, array), layout.table_array);
  expect("table_metatable", offsetof(T, metatable), layout.table_metatable);
  expect("table_lsizenode", offsetof(T, lsizenode), layout.table_lsizenode);
  expect("table_node", offsetof(T, node), layout.table_node);
  if constexpr (requires(T table) { table.asize; })
    expect("table_sizearray", offsetof(T, asize), layout.table_sizearray);
  else if constexpr (requires(T table) { table.alimit; })
    expect("table_sizearray", offsetof(T, alimit), layout.table_sizearray);
  else expect("table_sizearray", offsetof(T, sizearray), layout.table_sizearray);
}

template <typename T>
void compare_userdata(const Layout& layout) {
  if constexpr (requires(T userdata) { userdata.uv.metatable; })
    expect("udata_metatable", offsetof(T, uv.metatable), layout.udata_metatable);
  else expect("udata_metatable", offsetof(T, metatable), layout.udata_metatable);
  if constexpr (requires(T userdata) { userdata.nuvalue; }) {
    expect("udata_nuvalue", offsetof(T, nuvalue), layout.udata_nuvalue);
    expect("udata_uv", offsetof(T, uv), layout.udata_uv);
  } else {
    expect("udata_nuvalue", no_field, layout.udata_nuvalue);
  }
}

// The object's own length, found from its bytes backwards.
template <typename T>
void compare_userdata_memory(lua_State* L, const Layout& layout) {
  constexpr std::size_t size = 12345;
#if LUA_VERSION_NUM >= 504
  lua_newuserdatauv(L, size, 0);
#else
  lua_newuserdata(L, size);
#endif
  const auto* const object = reinterpret_cast<const T*>(static_cast<const std::byte*>(lua_touserdata(L, -1)) -
                                                        layout.udata_memory);
  if constexpr (requires(T userdata) { userdata.uv.len; }) expect("udata_memory", size, object->uv.len);
  else expect("udata_memory", size, object->len);
  lua_pop(L, 1);
}

template <typename State, typename Info>
void compare_calls(const Layout& layout) {
  if constexpr (requires(Info ci) { ci.u.l.nextraargs; })
    expect("ci_nextraargs", offsetof(Info, u.l.nextraargs), layout.ci_nextraargs);
  else expect("ci_nextraargs", no_field, layout.ci_nextraargs);
  if constexpr (requires(State L) { L.l_gt; }) expect("L_gt", offsetof(State, l_gt), layout.L_gt);
  else expect("L_gt", no_field, layout.L_gt);
}

// Compares the tags of numbers and booleans with those that this Lua uses.
inline void compare_tags(lua_State* L, const Layout& layout) {
  const auto tag = [&] {
    const auto* const slot = reinterpret_cast<const std::byte*>(lua_topointer(L, -1)) + layout.table_array;
    const std::byte* const array = *reinterpret_cast<const std::byte* const*>(slot);
    return layout.array_form == luaspy::ArrayForm::apart ? std::to_integer<unsigned>(array[4])
                                                         : std::to_integer<unsigned>(array[layout.value_tt]);
  };
  const auto tag_of = [&](auto push) {
    lua_createtable(L, 1, 0);
    push();
    lua_rawseti(L, -2, 1);
    const unsigned result = tag();
    lua_pop(L, 1);
    return result;
  };
  expect("tag_float", tag_of([&] { lua_pushnumber(L, 0.5); }), layout.tag_float);
  if (layout.tag_integer != 0xff) expect("tag_integer", tag_of([&] { lua_pushinteger(L, 1); }), layout.tag_integer);
  expect("boolean_variants", tag_of([&] { lua_pushboolean(L, 1); }) != tag_of([&] { lua_pushboolean(L, 0); }),
         layout.boolean_variants);
}

inline void compare(lua_State* L, const Layout& layout) {
  compare_table<Table>(layout);
  compare_userdata<Udata>(layout);
  compare_calls<lua_State, CallInfo>(layout);
  expect("closure_nupvalues", offsetof(LClosure, nupvalues), layout.closure_nupvalues);
  expect("closure_upvals", offsetof(LClosure, upvals), layout.closure_upvals);
  expect("upval_v", offsetof(UpVal, v), layout.upval_v);
  expect("value_size", sizeof(TValue), layout.value_size);
  expect("value_tt", sizeof(Value), layout.value_tt);
  expect("cclosure_upvalue", offsetof(CClosure, upvalue), layout.cclosure_upvalue);
  compare_userdata_memory<Udata>(L, layout);
  compare_tags(L, layout);
}

}  // namespace value_fields
