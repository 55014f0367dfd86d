#pragma once
// LuaJIT 2.1: offsetof() over the sources of 2.1.0-beta3 (2017), of OpenResty's and stock ones of 2022 to 2026-08, and of
// Tarantool 2.6, with -DLUAJIT_ENABLE_GC64 and -DLUAJIT_DISABLE_GC64: these fields are where they are in all of them.

#include "luastate/luajit/luajit_layout.h"

namespace luaspy::layout_rows {

inline constexpr LuajitLayout luajit_gc64 = {
    .gc64 = true, .ref_size = 8,
    .L_gct = 9, .L_status = 11, .L_glref = 16, .L_base = 32, .L_top = 40, .L_maxstack = 48, .L_stack = 56, .L_env = 72, .L_cframe = 80, .L_stacksize = 88,
    .cframe_L = 16, .cframe_PC = 24, .cframe_previous = 32, .cframe_nres = 8,
    .pt_size = 104, .pt_gct = 9, .pt_numparams = 10, .pt_framesize = 11, .pt_sizebc = 12, .pt_k = 32, .pt_sizekgc = 48, .pt_sizekn = 52, .pt_sizept = 56,
    .pt_sizeuv = 60, .pt_flags = 61, .pt_chunkname = 64, .pt_firstline = 72, .pt_numline = 76, .pt_lineinfo = 80, .pt_uvinfo = 88, .pt_varinfo = 96,
    .fn_gct = 9, .fn_ffid = 10, .fn_nupvalues = 11, .fn_env = 16, .fn_pc = 32, .fn_uvptr = 40, .fn_f = 40,
    .tab_asize = 48, .tab_hmask = 52, .tab_array = 16, .tab_node = 40, .tab_metatable = 32,
    .uv_v = 32,
    .udata_udtype = 10, .udata_size = 48, .cdata_ctypeid = 10, .cdata_size = 16,
    .T_size = 120, .T_gct = 9, .T_nk = 40, .T_ir = 32, .T_nsnapmap = 44, .T_snap = 48, .T_snapmap = 56, .T_startpt = 64, .T_startpc = 72, .T_startins = 80,
    .T_szmcode = 84, .T_mcode = 88, .T_spadjust = 102, .T_traceno = 104, .T_link = 106, .T_root = 108,
};

inline constexpr LuajitLayout luajit_gc32 = {
    .gc64 = false, .ref_size = 4,
    .L_gct = 5, .L_status = 7, .L_glref = 8, .L_base = 16, .L_top = 24, .L_maxstack = 32, .L_stack = 36, .L_env = 44, .L_cframe = 48, .L_stacksize = 56,
    .cframe_L = 24, .cframe_PC = 28, .cframe_previous = 32, .cframe_nres = 16,
    .pt_size = 64, .pt_gct = 5, .pt_numparams = 6, .pt_framesize = 7, .pt_sizebc = 8, .pt_k = 16, .pt_sizekgc = 24, .pt_sizekn = 28, .pt_sizept = 32,
    .pt_sizeuv = 36, .pt_flags = 37, .pt_chunkname = 40, .pt_firstline = 44, .pt_numline = 48, .pt_lineinfo = 52, .pt_uvinfo = 56, .pt_varinfo = 60,
    .fn_gct = 5, .fn_ffid = 6, .fn_nupvalues = 7, .fn_env = 8, .fn_pc = 16, .fn_uvptr = 20, .fn_f = 24,
    .tab_asize = 24, .tab_hmask = 28, .tab_array = 8, .tab_node = 20, .tab_metatable = 16,
    .uv_v = 16,
    .udata_udtype = 6, .udata_size = 24, .cdata_ctypeid = 6, .cdata_size = 8,
    .T_size = 96, .T_gct = 5, .T_nk = 24, .T_ir = 16, .T_nsnapmap = 28, .T_snap = 32, .T_snapmap = 40, .T_startpt = 48, .T_startpc = 52, .T_startins = 56,
    .T_szmcode = 60, .T_mcode = 64, .T_spadjust = 78, .T_traceno = 80, .T_link = 82, .T_root = 84,
};

}  // namespace luaspy::layout_rows
