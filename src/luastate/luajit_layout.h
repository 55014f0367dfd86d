#pragma once
// Where LuaJIT 2.1 keeps its fields. What is the same in all its builds of one pointer size is a row (layouts/luajit.h); where
// global_State and jit_State keep theirs differs from release to release and from fork to fork, and is found in the live
// global_State itself (luajit_layout.cpp, find_luajit). All numbers are bytes. Names are LuaJIT's own: struct_field, as in lj_obj.h,
// lj_jit.h, lj_frame.h.

#include <cstdint>
#include <optional>
#include <span>

#include "luastate/layout.h"
#include "memory.h"

namespace luaspy {

// lj_jit.h, SnapShot: what it tells of machine code.
enum class SnapshotForm : std::uint8_t {
  none,        // 8 bytes (2017) or 12 bytes (2020) without mcofs: which snapshot an instruction belongs to is not told
  with_mcofs,  // 12 bytes, from 2021-03 on (a32aeadc)
};

struct LuajitLayout {
  bool gc64 = true;            // lj_arch.h, LJ_GC64: 64-bit references, frames of two slots (LJ_FR2)
  std::uint8_t ref_size;       // of a GCRef and an MRef: 8 or 4

  // lj_obj.h: lua_State. base and top are 8 bytes in both forms, stack is an MRef, cframe a pointer.
  Offset L_gct, L_status, L_glref, L_base, L_top, L_maxstack, L_stack, L_env, L_cframe, L_stacksize;

  // lj_frame.h: the C frame of the VM, from its lowest address (cframe) on. L and PC are references, PREV a pointer.
  Offset cframe_L, cframe_PC, cframe_previous, cframe_nres;

  // lj_obj.h: GCproto; its bytecode follows it.
  Offset pt_size, pt_gct, pt_numparams, pt_framesize, pt_sizebc, pt_k, pt_sizekgc, pt_sizekn, pt_sizept, pt_sizeuv, pt_flags, pt_chunkname, pt_firstline,
      pt_numline, pt_lineinfo, pt_uvinfo, pt_varinfo;

  // lj_obj.h: GCfunc
  Offset fn_gct, fn_ffid, fn_nupvalues, fn_env, fn_pc, fn_uvptr, fn_f;

  // lj_obj.h: GCtab, Node, GCupval
  Offset tab_asize, tab_hmask, tab_array, tab_node, tab_metatable;  // a GCudata has its metatable at the same place
  std::uint8_t node_size = 24;
  Offset node_val = 0, node_key = 8, node_next = 16;
  Offset uv_v;                 // an MRef to the TValue

  // lj_jit.h: GCtrace
  Offset T_size, T_gct, T_nk, T_ir, T_nsnapmap, T_snap, T_snapmap, T_startpt, T_startpc, T_startins, T_szmcode, T_mcode, T_spadjust, T_traceno, T_link, T_root;

  // Found in the live process.
  Offset str_len = no_field, str_data = no_field;  // lj_obj.h, GCstr: moved in 2020-06 (ff34b48d)
  Offset T_nsnap = no_field;
  SnapshotForm snapshots = SnapshotForm::none;
  // global_State, from its own start; J's fields, too: both are parts of one GG_State (lj_dispatch.h).
  Offset G_main_L = no_field;     // how far below g the main thread lies
  Offset G_vmstate = no_field, G_mainthref = no_field, G_cur_L = no_field, G_jit_base = no_field, G_registry = no_field;
  Offset G_trace = no_field;      // J.trace: an MRef to an array of GCRefs
  Offset G_sizetrace = no_field;
  bool tarantool = false;         // its vmstate has three more values (LFUNC, FFUNC, CFUNC)
};

// lj_obj.h: the type of an object (GCHeader.gct), and of a value (its upper 17 bits with GC64, else its upper word), are ~ of each other.
namespace luajit {
inline constexpr std::uint8_t gct_string = 4, gct_upvalue = 5, gct_thread = 6, gct_proto = 7, gct_function = 8, gct_trace = 9, gct_cdata = 10,
                              gct_table = 11, gct_userdata = 12;
}

// What a TValue refers to if it is an object of type `gct`; 0 if it is anything else.
Address object_of(const LuajitLayout& layout, std::uint64_t value, std::uint8_t gct);

// A GCRef or MRef.
Address load_ref(const LuajitLayout& layout, std::span<const std::byte> bytes, std::size_t offset);
std::optional<Address> read_ref(const Memory& memory, const LuajitLayout& layout, Address address);

}  // namespace luaspy
