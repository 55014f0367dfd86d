#pragma once
// Lua 5.2: offsetof() over the sources of 5.2.4; 5.2.0 from its tag in lua/lua (CallInfo without
// u.l.extra, an older global_State).

#include "luastate/puc/layout.h"

namespace luaspy::layout_rows {

inline constexpr Layout lua52 = {
    .name = "5.2.1-5.2.4",
    .series = "5.2",
    .first_patch = 1,
    .last_patch = 4,
    .bytecode = Bytecode::lua52,
    .string_form = StringForm::length_word,
    .L_size = 208,
    .L_tt = 8,
    .L_status = 10,
    .L_top = 16,
    .L_G = 24,
    .L_ci = 32,
    .L_stack_last = 48,
    .L_stack = 56,
    .L_errorJmp = 112,
    .L_base_ci = 128,
    .G_mainthread = 264,
    .G_registry = 64,
    .G_gcstate = 85,
    .ci_size = 80,
    .ci_func = 0,
    .ci_savedpc = 56,
    .ci_previous = 16,
    .ci_next = 24,
    .ci_callstatus = 34,
    .callstatus_size = 1,
    .ci_base = 48,
    .status = {.lua = 0x01, .reentry = 0x04, .tail = 0x40, .hooked = 0x02},
    .tt_size = 4,
    .tag_lclosure = 70,
    .tag_cclosure = 102,
    .tag_light_c = 22,
    .tag_proto = 9,
    .lclosure_p = 24,
    .cclosure_f = 24,
    .cclosure_upvalue = 32,
    .p_size = 128,
    .p_k = 16,
    .p_code = 24,
    .p_lineinfo = 40,
    .p_locvars = 48,
    .p_upvalues = 56,
    .p_source = 72,
    .p_sizeupvalues = 80,
    .p_sizek = 84,
    .p_sizecode = 88,
    .p_sizelineinfo = 92,
    .p_sizelocvars = 100,
    .p_linedefined = 104,
    .p_lastlinedefined = 108,
    .p_numparams = 120,
    .p_is_vararg = 121,
    .upvalue_desc_size = 16,
    .string_len = 16,
    .string_data = 24,
    .table_lsizenode = 11,
    .table_node = 24,
    .node_size = 40,
    .node_value = 0,
    .node_key = 16,
    .node_key_tt = 24,
    // The collector.
    .G_allgc = 96,
    .G_currentwhite = 84,
    .G_totalbytes = 16,
    .G_GCdebt = 24,
    .estimate_from_totalbytes = 24,
    .G_gckind = 86,
    .L_hookmask = 72,
    .ci_extra = 40,
    .table_sizearray = 12,
    .table_array = 16,
    .table_metatable = 40,
    .array_form = ArrayForm::values,
    .closure_nupvalues = 10,
    .closure_upvals = 32,
    .upval_v = 16,
    .udata_metatable = 16,
    .udata_memory = 40,
    .heap = {.G_strt_hash = 48,
             .G_strt_size = 60,
             .G_finobj = 104,
             .G_tobefnz = 168,
             .G_buffsize = 232,
             .G_mt = 424,
             .G_tmname = 288,
             .global_size = 704,
             .thread_size = 208,
             .L_openupval = 96,
             .table_size = 56,
             .upvalue_size = 40,
             .upvalue_next = 0,
             .fixed_bit = 0x20,
             .udata_len = 32,
             .udata_user_value = 24},
};

inline constexpr Layout lua520 = [] {
  Layout row = lua52;
  row.name = "5.2.0";
  row.first_patch = row.last_patch = 0;
  row.G_mainthread = 240, row.G_registry = 56, row.G_gcstate = 73;
  row.ci_base = 40, row.ci_savedpc = 48;
  row.estimate_from_totalbytes = no_field;  // lastmajormem is there
  row.heap.G_strt_hash = 40, row.heap.G_strt_size = 52, row.heap.G_finobj = 88, row.heap.G_tobefnz = 144;
  row.heap.G_buffsize = 208, row.heap.G_tmname = 264, row.heap.G_mt = 400, row.heap.global_size = 680;
  row.G_allgc = 80, row.G_currentwhite = 72, row.G_gckind = 74, row.ci_extra = 64;  // extra in CallInfo.u.c
  return row;
}();

}  // namespace luaspy::layout_rows
