#pragma once
// Compares the heap fields of a row with the compiler's view of the structures. Included after Lua's
// own headers; sizes are what lstate.c allocates.

#include <cstddef>

#include "collector_fields.h"

namespace heap_fields {

using luaspy::HeapFields;
using luaspy::no_field;

// lstate.c: LX and LG.
#if LUA_VERSION_NUM >= 503
struct Extended {
  unsigned char extra[LUA_EXTRASPACE];
  lua_State state;
};
#else
struct Extended {
  lua_State state;
};
#endif
struct Both {
  Extended thread;
  global_State global;
};

template <typename Global>
void compare_lists(const HeapFields& heap) {
  if constexpr (requires(Global g) { g.finobj; }) {
    expect_field("G_finobj", offsetof(Global, finobj), heap.G_finobj);
    expect_field("G_tobefnz", offsetof(Global, tobefnz), heap.G_tobefnz);
  } else {
    expect_field("G_finobj", no_field, heap.G_finobj);
    expect_field("G_tobefnz", no_field, heap.G_tobefnz);
  }
  if constexpr (requires(Global g) { g.fixedgc; }) expect_field("G_fixedgc", offsetof(Global, fixedgc), heap.G_fixedgc);
  else expect_field("G_fixedgc", no_field, heap.G_fixedgc);
  if constexpr (requires(Global g) { g.tmudata; }) expect_field("G_tmudata", offsetof(Global, tmudata), heap.G_tmudata);
  else expect_field("G_tmudata", no_field, heap.G_tmudata);
  if constexpr (requires(Global g) { g.buff.buffsize; })
    expect_field("G_buffsize", offsetof(Global, buff.buffsize), heap.G_buffsize);
  else expect_field("G_buffsize", no_field, heap.G_buffsize);
  // 5.5 has the main thread in the global_State.
  constexpr bool has_main = requires(Global g) { g.mainth; };
  expect_field("global_size", has_main ? sizeof(Global) : sizeof(Both), heap.global_size);
}

template <typename Object>
void compare_userdata(const HeapFields& heap) {
  if constexpr (requires(Object udata) { udata.uv.len; }) {
    expect_field("udata_len", offsetof(Object, uv.len), heap.udata_len);
    expect_field("udata_user_value", offsetof(Object, uv.env), heap.udata_user_value);
    expect_field("udata_user_tag", no_field, heap.udata_user_tag);
  } else {
    expect_field("udata_len", offsetof(Object, len), heap.udata_len);
    if constexpr (requires(Object udata) { udata.ttuv_; }) {
      expect_field("udata_user_value", offsetof(Object, user_), heap.udata_user_value);
      expect_field("udata_user_tag", offsetof(Object, ttuv_), heap.udata_user_tag);
    } else {
      expect_field("udata_user_value", no_field, heap.udata_user_value);
      expect_field("udata_user_tag", no_field, heap.udata_user_tag);
    }
  }
}

// lstring.c of 5.5, luaS_sizelngstr.
template <typename Object>
void compare_string(const HeapFields& heap) {
  if constexpr (requires(Object string) { string.falloc; })
    expect_field("long_string_data", offsetof(Object, falloc), heap.long_string_data);
  else expect_field("long_string_data", no_field, heap.long_string_data);
}

// Up to 5.2 open upvalues are a list of the collector's.
template <typename Object>
void compare_open_list(const HeapFields& heap) {
  if constexpr (requires(Object upvalue) { upvalue.u.open.next; })
    expect_field("upvalue_next", offsetof(Object, u.open.next), heap.upvalue_next);
  else expect_field("upvalue_next", 0, heap.upvalue_next);
}

inline void compare(const HeapFields& heap) {
  expect_field("G_strt_hash", offsetof(global_State, strt.hash), heap.G_strt_hash);
  expect_field("G_strt_size", offsetof(global_State, strt.size), heap.G_strt_size);
  expect_field("G_mt", offsetof(global_State, mt), heap.G_mt);
  expect_field("G_tmname", offsetof(global_State, tmname), heap.G_tmname);
  expect_field("thread_size", sizeof(Extended), heap.thread_size);
  expect_field("L_openupval", offsetof(lua_State, openupval), heap.L_openupval);
  expect_field("table_size", sizeof(Table), heap.table_size);
  expect_field("upvalue_size", sizeof(UpVal), heap.upvalue_size);
#if LUA_VERSION_NUM <= 502
  expect_field("fixed_bit", 1 << FIXEDBIT, heap.fixed_bit);
#else
  expect_field("fixed_bit", 0, heap.fixed_bit);
#endif
  compare_lists<global_State>(heap);
  compare_userdata<Udata>(heap);
  compare_string<TString>(heap);
  compare_open_list<UpVal>(heap);
}

}  // namespace heap_fields
