#pragma once
// LuaJIT: offsetof() over the sources of 2.0 (2026), of 2.1.0-beta3 (2017), of OpenResty's and stock
// ones of 2022 to 2026-08, and of Tarantool 2.6, with -DLUAJIT_ENABLE_GC64 and
// -DLUAJIT_DISABLE_GC64. These fields have the same offsets in all of them; 2.0 has 32-bit references
// only.

#include "luastate/luajit/luajit_layout.h"

namespace luaspy::layout_rows {

// Each field with 64-bit references, and with 32-bit ones. One that is forgotten does not compile.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
constexpr LuajitLayout luajit_row(bool gc64) {
  const auto field = [gc64](Offset wide, Offset narrow) { return gc64 ? wide : narrow; };
  return {
      .gc64 = gc64,
      .ref_size = gc64 ? std::uint8_t{8} : std::uint8_t{4},
      .L_gct = field(9, 5),
      .L_status = field(11, 7),
      .L_glref = field(16, 8),
      .L_base = field(32, 16),
      .L_top = field(40, 24),
      .L_maxstack = field(48, 32),
      .L_stack = field(56, 36),
      .L_openupval = field(64, 40),
      .L_env = field(72, 44),
      .L_cframe = field(80, 48),
      .L_stacksize = field(88, 56),
      .cframe_L = field(16, 24),
      .cframe_PC = field(24, 28),
      .cframe_previous = 32,
      .cframe_nres = field(8, 16),
      .pt_size = field(104, 64),
      .pt_gct = field(9, 5),
      .pt_numparams = field(10, 6),
      .pt_framesize = field(11, 7),
      .pt_sizebc = field(12, 8),
      .pt_k = field(32, 16),
      .pt_sizekgc = field(48, 24),
      .pt_sizekn = field(52, 28),
      .pt_sizept = field(56, 32),
      .pt_sizeuv = field(60, 36),
      .pt_flags = field(61, 37),
      .pt_trace = field(62, 38),
      .pt_chunkname = field(64, 40),
      .pt_firstline = field(72, 44),
      .pt_numline = field(76, 48),
      .pt_lineinfo = field(80, 52),
      .pt_uvinfo = field(88, 56),
      .pt_varinfo = field(96, 60),
      .fn_gct = field(9, 5),
      .fn_ffid = field(10, 6),
      .fn_nupvalues = field(11, 7),
      .fn_env = field(16, 8),
      .fn_pc = field(32, 16),
      .fn_uvptr = field(40, 20),
      .fn_f = field(40, 24),
      .tab_size = field(64, 32),
      .tab_colo = field(11, 7),
      .tab_asize = field(48, 24),
      .tab_hmask = field(52, 28),
      .tab_array = field(16, 8),
      .tab_node = field(40, 20),
      .tab_metatable = field(32, 16),
      .uv_size = field(48, 24),
      .uv_v = field(32, 16),
      .udata_udtype = field(10, 6),
      .udata_env = field(16, 8),
      .udata_len = field(24, 12),
      .udata_size = field(48, 24),
      .cdata_ctypeid = field(10, 6),
      .cdata_size = field(16, 8),
      .T_size = field(120, 96),
      .T_gct = field(9, 5),
      .T_nins = field(12, 8),
      .T_nk = field(40, 24),
      .T_ir = field(32, 16),
      .T_nsnapmap = field(44, 28),
      .T_snap = field(48, 32),
      .T_snapmap = field(56, 40),
      .T_startpt = field(64, 48),
      .T_startpc = field(72, 52),
      .T_startins = field(80, 56),
      .T_szmcode = field(84, 60),
      .T_mcode = field(88, 64),
      .T_spadjust = field(102, 78),
      .T_traceno = field(104, 80),
      .T_link = field(106, 82),
      .T_root = field(108, 84),
      .T_nextroot = field(110, 86),
      .T_nextside = field(112, 88),
  };
}
#pragma GCC diagnostic pop

inline constexpr LuajitLayout luajit_gc64 = luajit_row(true), luajit_gc32 = luajit_row(false);

}  // namespace luaspy::layout_rows
