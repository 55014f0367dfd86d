#pragma once
// Lua 5.5: offsetof() over the sources of 5.5.1; 5.5.0 has the same structs, but for udata_uv, which is 40 in betas (luaconf.h, LUAI_MAXALIGN).

#include "luastate/puc/layout.h"

namespace luaspy::layout_rows {

inline constexpr Layout lua55 = {
    .name = "5.5.0-5.5.1", .series = "5.5", .first_patch = 0, .last_patch = 1,
    .bytecode = Bytecode::lua55, .string_form = StringForm::signed_short,
    .L_size = 208, .L_tt = 8, .L_status = 11, .L_top = 16, .L_G = 24, .L_ci = 32, .L_stack_last = 40, .L_stack = 48,
    .L_errorJmp = 88, .L_base_ci = 96,
    .G_mainthread = 1416, .mainthread_embedded = true, .G_registry = 64, .G_gcstate = 107,
    .ci_size = 64, .ci_func = 0, .ci_savedpc = 32, .ci_previous = 16, .ci_next = 24,
    .ci_callstatus = 60, .callstatus_size = 4,
    .status = {.c = 0x8000, .fresh = 0x10000, .tail = 0x400000, .hooked = 0x80000, .finalizer = 0x1000000},
    .tt_size = 1, .tag_lclosure = 70, .tag_cclosure = 102, .tag_light_c = 22, .tag_proto = 10,
    .lclosure_p = 24, .cclosure_f = 24,
    .p_size = 128, .p_k = 56, .p_code = 64, .p_lineinfo = 88, .p_locvars = 104, .p_upvalues = 80, .p_source = 112,
    .p_sizeupvalues = 16, .p_sizek = 20, .p_sizecode = 24, .p_sizelineinfo = 28, .p_sizelocvars = 36,
    .p_linedefined = 44, .p_lastlinedefined = 48, .p_numparams = 10, .p_is_vararg = 11,
    .p_abslineinfo = 96, .p_sizeabslineinfo = 40,
    .upvalue_desc_size = 16,
    .string_len = 16, .string_shrlen = 11, .string_data = 24,
    .table_lsizenode = 11, .table_node = 24, .node_size = 24, .node_value = 0, .node_key = 16, .node_key_tt = 9,
    // The collector; GCtotalbytes.
    .G_allgc = 112, .G_currentwhite = 106, .G_totalbytes = 16, .G_GCdebt = 24, .G_gckind = 108, .L_hookmask = 196,
    .table_sizearray = 12, .table_array = 16, .table_metatable = 32, .array_form = ArrayForm::apart,
    .tag_float = 19, .tag_integer = 3, .boolean_variants = true, .closure_nupvalues = 10, .closure_upvals = 32, .upval_v = 16,
    .udata_metatable = 24, .udata_memory = 32, .udata_nuvalue = 10, .udata_uv = 48, .ci_nextraargs = 44, .has_varargs = 1,
};

}  // namespace luaspy::layout_rows
