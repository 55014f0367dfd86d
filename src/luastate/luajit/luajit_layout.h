#pragma once
// Where LuaJIT 2.0 and 2.1 keep their fields. Offsets that are the same in all builds of one pointer size
// are in a row (luajit/layouts.h). Those in global_State and jit_State differ from release to
// release and from fork to fork; they are found in the live global_State itself (luajit_layout.cpp,
// find_globals). All numbers are bytes. Names are LuaJIT's own: struct_field, as in lj_obj.h,
// lj_jit.h, lj_frame.h.

#include <cstdint>
#include <optional>
#include <span>

#include "base/memory.h"
#include "luastate/offset.h"
#include "luastate/opcode.h"

namespace luaspy {

// lj_jit.h, SnapShot.
struct SnapshotForm {
  std::uint8_t size = 0;
  std::uint8_t mapofs_size = 4;  // mapofs is at 0
  std::uint8_t nent = 0;
  // Offset of the start in the machine code; 0: not recorded before 2021-03 (a32aeadc).
  std::uint8_t mcofs = 0;

  bool operator==(const SnapshotForm&) const = default;
};

struct LuajitLayout {
  bool gc64 = true;       // lj_arch.h, LJ_GC64: 64-bit references, frames of two slots (LJ_FR2)
  std::uint8_t ref_size;  // of a GCRef and an MRef: 8 or 4

  // lj_obj.h: lua_State. base and top are 8 bytes in both forms, stack is an MRef, cframe a
  // pointer.
  Offset L_gct, L_status, L_glref, L_base, L_top, L_maxstack, L_stack, L_openupval, L_env, L_cframe, L_stacksize;

  // lj_frame.h: the C frame of the VM, starting at its lowest address (cframe). L and PC are
  // references, PREV is a pointer.
  Offset cframe_L, cframe_PC, cframe_previous, cframe_nres;

  // lj_obj.h: GCproto; its bytecode follows it.
  Offset pt_size, pt_gct, pt_numparams, pt_framesize, pt_sizebc, pt_k, pt_sizekgc, pt_sizekn, pt_sizept, pt_sizeuv,
      pt_flags, pt_trace, pt_chunkname, pt_firstline, pt_numline, pt_lineinfo, pt_uvinfo, pt_varinfo;

  // lj_obj.h: GCfunc
  Offset fn_gct, fn_ffid, fn_nupvalues, fn_env, fn_pc, fn_uvptr, fn_f;

  // lj_obj.h: GCtab, Node, GCupval
  Offset tab_size, tab_colo, tab_asize, tab_hmask, tab_array, tab_node;
  Offset tab_metatable;  // a GCudata has its metatable at the same place
  std::uint8_t node_size = 24;
  Offset node_val = 0, node_key = 8;
  Offset uv_size, uv_v;  // v: an MRef to the TValue

  // lj_obj.h: GCudata, GCcdata; their contents follow them
  Offset udata_udtype, udata_env, udata_len, udata_size, cdata_ctypeid, cdata_size;

  // lj_jit.h: GCtrace
  Offset T_size, T_gct, T_nins, T_nk, T_ir, T_nsnapmap, T_snap, T_snapmap, T_startpt, T_startpc, T_startins, T_szmcode,
      T_mcode, T_spadjust, T_traceno, T_link, T_root, T_nextroot, T_nextside;

  // Found in the live process: find_globals.
  Offset str_len = no_field, str_data = no_field;  // lj_obj.h, GCstr: len moved in 2020-06 (ff34b48d)
  // How far the main thread lies below its global_State: both are parts of one GG_State
  // (lj_dispatch.h).
  Offset main_L_below = no_field;
  Offset G_vmstate = no_field, G_mainthref = no_field, G_registry = no_field, G_cur_L = no_field, G_jit_base = no_field;
  Offset G_gc = no_field;        // lj_obj.h, GCState; its fields have the same order in all releases
  Offset G_hookmask = no_field;  // uint8_t
  Offset G_gcroot = no_field;    // GCRefs; the names of metamethods come first (lj_obj.h, GCRootID)
  // Tarantool from 2020 on has LFUNC, FFUNC and CFUNC in place of C.
  bool more_vmstates = false;
  // lj_bc.h, BC_FUNCF: the first of the headers of functions, which are the highest opcodes. 85 in
  // 2.0, 89 in 2.1, and 96 since 2026-07 (a2ce8114).
  std::uint8_t first_header = 0;
  // LuaJIT 2.0. It has jit_L where later releases have cur_L: the thread that runs machine code, or 0
  // if none does. G_cur_L is its place then.
  bool is_20 = false;

  // Found when there is machine code: find_traces.
  // jit_State.trace, relative to the global_State: an MRef to an array of GCRefs.
  Offset G_trace = no_field;
  Offset G_sizetrace = no_field;
  Offset T_nsnap = no_field;
  SnapshotForm snapshots{};

  bool operator==(const LuajitLayout&) const = default;
};

// lj_obj.h: the type of an object (GCHeader.gct), and of a value (its upper 17 bits with GC64,
// otherwise its upper word), are ~ of each other.
namespace luajit {
inline constexpr std::uint8_t gct_string = 4, gct_upvalue = 5, gct_thread = 6, gct_proto = 7, gct_function = 8,
                              gct_trace = 9, gct_cdata = 10, gct_table = 11, gct_userdata = 12;
}

bool is_thread_of(const Memory& memory, const LuajitLayout& layout, Address L, Address G);

// The thread of `G` that runs, and the base that its machine code works on. Base 0: no machine code
// runs; then L may be 0, too.
struct TraceBase {
  Address L = 0, base = 0;
};
TraceBase read_trace_base(const Memory& memory, const LuajitLayout& layout, Address G);

inline Bytecode bytecode_of(const LuajitLayout& layout) {
  if (layout.is_20) return Bytecode::luajit20;
  return layout.gc64 ? Bytecode::luajit : Bytecode::luajit_gc32;
}

// lj_ir.h, IR_KGC: a constant that is an object.
inline std::uint8_t kgc_opcode(const LuajitLayout& layout) { return layout.is_20 ? 23 : 24; }

// Finds the offsets in `G`, the global_State of `L`. On entry, `layout` has the layout of its pointer
// size; the part "Found in the live process" is filled in. False if `L` is not a thread of `G` in
// such a LuaJIT: the memory may have changed since `G` was read from it. Reads some 2 KiB.
bool find_globals(const Memory& memory, Address L, Address G, LuajitLayout& layout);

// The same for jit_State and GCtrace. False until there is a trace to find them with.
bool find_traces(const Memory& memory, Address G, LuajitLayout& layout);

// The object in a TValue if it has type `gct`; 0 otherwise.
Address object_of(const LuajitLayout& layout, std::uint64_t value, std::uint8_t gct);

// A GCRef or MRef.
Address load_ref(const LuajitLayout& layout, std::span<const std::byte> bytes, std::size_t offset);
std::optional<Address> read_ref(const Memory& memory, const LuajitLayout& layout, Address address);

}  // namespace luaspy
