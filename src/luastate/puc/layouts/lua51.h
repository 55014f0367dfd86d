#pragma once
// Lua 5.1: offsetof() over the sources of 5.1.5; the structs are the same from 5.1.0 on (lua/lua, lstate.h and lobject.h at each tag).

#include "luastate/puc/layout.h"

namespace luaspy::layout_rows {

inline constexpr Layout lua51 = {
    .name = "5.1.0-5.1.5", .series = "5.1", .first_patch = 0, .last_patch = 5,
    .bytecode = Bytecode::lua51, .string_form = StringForm::length_word,
    .L_size = 184, .L_tt = 8, .L_status = 10, .L_top = 16, .L_G = 32, .L_ci = 40, .L_stack_last = 56, .L_stack = 64,
    .L_errorJmp = 168, .L_base_ci = 80, .L_base = 24, .L_savedpc = 48,
    .G_mainthread = 176, .G_registry = 160, .G_gcstate = 33,
    .ci_size = 40, .ci_func = 8, .ci_savedpc = 24, .ci_base = 0, .ci_tailcalls = 36,
    .tt_size = 4, .tag_lclosure = 6, .tag_cclosure = 6, .tag_light_c = 0xff, .tag_proto = 9,
    .closure_isC = 10, .lclosure_p = 32, .cclosure_f = 32,
    .p_size = 120, .p_k = 16, .p_code = 24, .p_lineinfo = 40, .p_locvars = 48, .p_upvalues = 56, .p_source = 64,
    .p_sizeupvalues = 72, .p_sizek = 76, .p_sizecode = 80, .p_sizelineinfo = 84, .p_sizelocvars = 92,
    .p_linedefined = 96, .p_lastlinedefined = 100, .p_numparams = 113, .p_is_vararg = 114,
    .upvalue_desc_size = 8,
    .string_len = 16, .string_data = 24,
    .table_lsizenode = 11, .table_node = 32, .node_size = 40, .node_value = 0, .node_key = 16, .node_key_tt = 24,
    // The collector; rootgc.
    .G_allgc = 40, .G_currentwhite = 32, .G_totalbytes = 120, .L_hookmask = 100,
    .table_sizearray = 56, .table_array = 24, .table_metatable = 16, .array_form = ArrayForm::values,
    .closure_nupvalues = 11, .closure_upvals = 40, .upval_v = 16, .udata_metatable = 16, .udata_memory = 40, .L_gt = 120,
};

}  // namespace luaspy::layout_rows
