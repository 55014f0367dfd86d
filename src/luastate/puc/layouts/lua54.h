#pragma once
// Lua 5.4: offsetof() over the sources of 5.4.4 and 5.4.9; 5.4.0 to 5.4.2 from their tags in
// lua/lua.

#include "luastate/puc/layout.h"

namespace luaspy::layout_rows {

inline constexpr Layout lua54 = {
    .name = "5.4.3-5.4.9",
    .series = "5.4",
    .first_patch = 3,
    .last_patch = 9,
    .bytecode = Bytecode::lua54,
    .string_form = StringForm::short_long,
    .L_size = 200,
    .L_tt = 8,
    .L_status = 10,
    .L_top = 16,
    .L_G = 24,
    .L_ci = 32,
    .L_stack_last = 40,
    .L_stack = 48,
    .L_errorJmp = 88,
    .L_base_ci = 96,
    .G_mainthread = 264,
    .G_registry = 64,
    .G_gcstate = 101,
    .ci_size = 64,
    .ci_func = 0,
    .ci_savedpc = 32,
    .ci_previous = 16,
    .ci_next = 24,
    .ci_callstatus = 62,
    .callstatus_size = 2,
    .status = {.c = 0x02, .fresh = 0x04, .tail = 0x20, .hooked = 0x08, .finalizer = 0x80},
    .tt_size = 1,
    .tag_lclosure = 70,
    .tag_cclosure = 102,
    .tag_light_c = 22,
    .tag_proto = 10,
    .lclosure_p = 24,
    .cclosure_f = 24,
    .cclosure_upvalue = 32,
    .p_size = 128,
    .p_k = 56,
    .p_code = 64,
    .p_lineinfo = 88,
    .p_locvars = 104,
    .p_upvalues = 80,
    .p_source = 112,
    .p_sizeupvalues = 16,
    .p_sizek = 20,
    .p_sizecode = 24,
    .p_sizelineinfo = 28,
    .p_sizelocvars = 36,
    .p_linedefined = 44,
    .p_lastlinedefined = 48,
    .p_numparams = 10,
    .p_is_vararg = 11,
    .p_abslineinfo = 96,
    .p_sizeabslineinfo = 40,
    .upvalue_desc_size = 16,
    .string_len = 16,
    .string_shrlen = 11,
    .string_data = 24,
    .table_lsizenode = 11,
    .table_node = 24,
    .node_size = 24,
    .node_value = 0,
    .node_key = 16,
    .node_key_tt = 9,
    // The collector.
    .G_allgc = 112,
    .G_currentwhite = 100,
    .G_totalbytes = 16,
    .G_GCdebt = 24,
    .estimate_from_totalbytes = 16,
    .G_gckind = 102,
    .L_hookmask = 192,
    .table_sizearray = 12,
    .table_array = 16,
    .table_metatable = 40,
    .array_form = ArrayForm::limited,
    .tag_float = 19,
    .tag_integer = 3,
    .boolean_variants = true,
    .closure_nupvalues = 10,
    .closure_upvals = 32,
    .upval_v = 16,
    .udata_metatable = 24,
    .udata_memory = 32,
    .udata_nuvalue = 10,
    .udata_uv = 40,
    .ci_nextraargs = 44,
    .heap = {.G_strt_hash = 48,
             .G_strt_size = 60,
             .G_finobj = 128,
             .G_tobefnz = 176,
             .G_fixedgc = 184,
             .G_mt = 480,
             .G_tmname = 280,
             .global_size = 1624,
             .thread_size = 208,
             .L_openupval = 56,
             .table_size = 56,
             .upvalue_size = 40,
             .upvalue_next = 24,
             .udata_len = 16},
};

inline constexpr Layout lua542 = [] {
  Layout row = lua54;
  row.name = "5.4.2";
  row.first_patch = row.last_patch = 2;
  row.L_size = 192, row.L_errorJmp = 80, row.L_base_ci = 88;
  row.L_hookmask = 184;
  row.heap.thread_size = 200, row.heap.global_size = 1616;
  return row;
}();

// lvm.c of 5.4.0 and 5.4.1: OP_CALL calls luaD_call for Lua functions too; there is no CIST_FRESH.
inline constexpr Layout lua541 = [] {
  Layout row = lua542;
  row.name = "5.4.1";
  row.first_patch = row.last_patch = 1;
  row.status = {.c = 0x02, .tail = 0x10, .hooked = 0x04, .finalizer = 0x40};
  row.recurses_per_call = true;
  return row;
}();

inline constexpr Layout lua540 = [] {
  Layout row = lua541;
  row.name = "5.4.0";
  row.first_patch = row.last_patch = 0;
  row.L_size = 200, row.L_stack_last = 48, row.L_stack = 56, row.L_errorJmp = 88, row.L_base_ci = 96;
  row.G_mainthread = 256;
  row.L_hookmask = 192;
  row.heap.G_tmname = 272, row.heap.G_mt = 472, row.heap.thread_size = 208, row.heap.L_openupval = 64;
  return row;
}();

}  // namespace luaspy::layout_rows
