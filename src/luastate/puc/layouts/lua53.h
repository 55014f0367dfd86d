#pragma once
// Lua 5.3: offsetof() over the sources of 5.3.6; the older rows from their tags in lua/lua
// (lstate.h, lobject.h).

#include "luastate/puc/layout.h"

namespace luaspy::layout_rows {

// callstatus became an unsigned short, for CIST_FIN, in 5.3.4.
inline constexpr Layout lua53 = {
    .name = "5.3.4-5.3.6",
    .series = "5.3",
    .first_patch = 4,
    .last_patch = 6,
    .bytecode = Bytecode::lua53,
    .string_form = StringForm::short_long,
    .L_size = 208,
    .L_tt = 8,
    .L_status = 12,
    .L_top = 16,
    .L_G = 24,
    .L_ci = 32,
    .L_stack_last = 48,
    .L_stack = 56,
    .L_errorJmp = 88,
    .L_base_ci = 96,
    .G_mainthread = 200,
    .G_registry = 64,
    .G_gcstate = 85,
    .ci_size = 72,
    .ci_func = 0,
    .ci_savedpc = 40,
    .ci_previous = 16,
    .ci_next = 24,
    .ci_callstatus = 66,
    .callstatus_size = 2,
    .ci_base = 32,
    .status = {.lua = 0x02, .fresh = 0x08, .tail = 0x20, .hooked = 0x04, .finalizer = 0x100},
    .tt_size = 4,
    .tag_lclosure = 70,
    .tag_cclosure = 102,
    .tag_light_c = 22,
    .tag_proto = 9,
    .lclosure_p = 24,
    .cclosure_f = 24,
    .cclosure_upvalue = 32,
    .p_size = 120,
    .p_k = 48,
    .p_code = 56,
    .p_lineinfo = 72,
    .p_locvars = 80,
    .p_upvalues = 88,
    .p_source = 104,
    .p_sizeupvalues = 16,
    .p_sizek = 20,
    .p_sizecode = 24,
    .p_sizelineinfo = 28,
    .p_sizelocvars = 36,
    .p_linedefined = 40,
    .p_lastlinedefined = 44,
    .p_numparams = 10,
    .p_is_vararg = 11,
    .upvalue_desc_size = 16,
    .string_len = 16,
    .string_shrlen = 11,
    .string_data = 24,
    .table_lsizenode = 11,
    .table_node = 24,
    .node_size = 32,
    .node_value = 0,
    .node_key = 16,
    .node_key_tt = 24,
    // The collector.
    .G_allgc = 88,
    .G_currentwhite = 84,
    .G_totalbytes = 16,
    .G_GCdebt = 24,
    .estimate_from_totalbytes = 24,
    .L_hookmask = 200,
    .ci_extra = 56,
    .table_sizearray = 12,
    .table_array = 16,
    .table_metatable = 40,
    .array_form = ArrayForm::values,
    .tag_integer = 19,
    .closure_nupvalues = 10,
    .closure_upvals = 32,
    .upval_v = 0,
    .udata_metatable = 16,
    .udata_memory = 40,
    .heap = {.G_strt_hash = 48,
             .G_strt_size = 60,
             .G_finobj = 104,
             .G_tobefnz = 152,
             .G_fixedgc = 160,
             .G_mt = 416,
             .G_tmname = 224,
             .global_size = 1552,
             .thread_size = 216,
             .L_openupval = 64,
             .table_size = 56,
             .upvalue_size = 32,
             .upvalue_next = 16,
             .udata_len = 24,
             .udata_user_value = 32,
             .udata_user_tag = 10},
};

inline constexpr Layout lua532 = [] {
  Layout row = lua53;
  row.name = "5.3.2-5.3.3";
  row.first_patch = 2, row.last_patch = 3;
  row.callstatus_size = 1;
  row.status.finalizer = 0;
  return row;
}();

// CIST_REENTRY, the inverse of the later CIST_FRESH; lua_State.status before nci.
inline constexpr Layout lua531 = [] {
  Layout row = lua532;
  row.name = "5.3.1";
  row.first_patch = row.last_patch = 1;
  row.L_status = 10;
  row.G_mainthread = 224;
  row.heap.G_buffsize = 192, row.heap.G_tmname = 248, row.heap.G_mt = 440, row.heap.global_size = 1744;
  row.status.fresh = 0, row.status.reentry = 0x08;
  return row;
}();

inline constexpr Layout lua530 = [] {
  Layout row = lua531;
  row.name = "5.3.0";
  row.first_patch = row.last_patch = 0;
  row.string_form = StringForm::length_word;
  row.string_shrlen = no_field, row.string_data = 32;
  row.heap.global_size = 728;
  return row;
}();

}  // namespace luaspy::layout_rows
