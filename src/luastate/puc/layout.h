#pragma once
// Where PUC Lua keeps its fields. A Layout is data: one layout per range of releases (layouts.h), read
// by one walker. All numbers are bytes on LP64 (x86-64, arm64). Names are Lua's own: struct_field,
// as in lstate.h, lobject.h, ltable.h.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/memory.h"
#include "luastate/offset.h"
#include "luastate/opcode.h"

namespace luaspy {

// How a TString keeps its length (lobject.h).
enum class StringForm : std::uint8_t {
  length_word,   // 5.1–5.3.0: size_t len
  short_long,    // 5.3.1–5.4: u8 shrlen for short strings, size_t lnglen for long ones; the tag says which
  signed_short,  // 5.5: i8 shrlen; negative: long, with lnglen and a pointer to the characters
};

// How a Table keeps its array part (lobject.h, ltable.h).
enum class ArrayForm : std::uint8_t {
  values,   // up to 5.3: sizearray TValues
  limited,  // 5.4: alimit is the size, or a hint within its highest power of two (ltable.c, luaH_realasize)
  apart,    // 5.5: asize Values below `array`, growing downwards, and their tags above it
};

// What a set (or clear) bit of CallInfo.callstatus means. A mask of 0: this release has no such
// bit.
struct StatusBits {
  std::uint32_t lua = 0;        // set: a Lua function (5.2, 5.3)
  std::uint32_t c = 0;          // set: a C function (5.4, 5.5)
  std::uint32_t fresh = 0;      // set: luaV_execute was entered for this frame
  std::uint32_t reentry = 0;    // opposite of fresh (5.2–5.3.1): set: runs in its caller's luaV_execute
  std::uint32_t tail = 0;       // set: this frame replaced its caller
  std::uint32_t hooked = 0;     // set: this function is running a debug hook
  std::uint32_t finalizer = 0;  // set: called as a __gc metamethod
};

// What a walk over all objects needs. Sizes are what the VM allocates, and counts.
struct HeapFields {
  // lstate.h: global_State. `strt` has the short strings (5.1, 5.2: all of them that are in no list).
  Offset G_strt_hash, G_strt_size;
  Offset G_finobj = no_field, G_tobefnz = no_field;  // objects with finalizers; those that wait for theirs
  Offset G_fixedgc = no_field;                       // 5.3 and later: Lua's own strings
  Offset G_tmudata = no_field;                       // 5.1: the last of a ring of userdata that wait for __gc
  Offset G_buffsize = no_field;                      // 5.1, 5.2: of a buffer of its own, size_t
  Offset G_mt, G_tmname;                             // arrays: metatables of basic types, names of metamethods
  std::uint16_t global_size;                         // of what lua_newstate allocates: global_State and main thread
  std::uint16_t thread_size;                         // lua_State with what lies before it (LUA_EXTRASPACE)
  Offset L_openupval;
  std::uint8_t table_size, upvalue_size;
  Offset upvalue_next;         // in an open upvalue: the next one of the list at L_openupval
  std::uint8_t fixed_bit = 0;  // of `marked`, 5.1, 5.2: of Lua's own strings (lgc.h, FIXEDBIT)
  Offset udata_len;
  Offset udata_user_value = no_field, udata_user_tag = no_field;  // 5.1: env; 5.2, 5.3: the user value
  Offset long_string_data = no_field;  // 5.5: where a long string's characters begin if they are in it
  std::uint8_t lastfree_log2 = 0xff;   // 5.5: hash parts of at least 2^this slots have a Limbox before them (ltable.c)
};

struct Layout {
  std::string_view name;        // "5.4.3–5.4.9"
  std::string_view series;      // "5.4": what LUA_VERSION says
  int first_patch, last_patch;  // releases series.first_patch … series.last_patch
  Bytecode bytecode;
  StringForm string_form;

  // lstate.h: lua_State
  Offset L_size, L_tt, L_status, L_top, L_G, L_ci, L_stack_last, L_stack, L_errorJmp;
  Offset L_base_ci;             // 5.1: a pointer to the first CallInfo of an array; later: the embedded first CallInfo
  Offset L_base = no_field;     // 5.1
  Offset L_savedpc = no_field;  // 5.1: of the running function

  // lstate.h: global_State
  Offset G_mainthread;  // a pointer to the main thread; 5.5: the main thread itself
  bool mainthread_embedded = false;
  Offset G_registry;  // TValue l_registry
  Offset G_gcstate;   // lu_byte

  // lstate.h: CallInfo
  Offset ci_size, ci_func, ci_savedpc;
  Offset ci_previous = no_field;  // 5.1 has an array: the previous one is ci_size below
  Offset ci_next = no_field;
  Offset ci_callstatus = no_field;
  std::uint8_t callstatus_size = 0;
  Offset ci_base = no_field;       // register 0 of a Lua call; 5.4 and later: the slot after its function
  Offset ci_tailcalls = no_field;  // 5.1: int, number of frames lost to tail calls under this one
  StatusBits status{};
  bool recurses_per_call = false;  // 5.4.0–5.4.1: each Lua-to-Lua call enters luaV_execute again

  // lobject.h: TValue and tags. A Value of 8 bytes, or of 16 where lua_Number is long double
  // (layouts.cpp, wide()), and the tag behind it.
  std::uint8_t value_size = 16;  // bytes of a TValue: a slot of the stack, a constant, a user value
  std::uint8_t value_tt = 8;     // where the tag is: also the size of a Value, and its alignment
  std::uint8_t tt_size;          // bytes of TValue.tt_: 4 up to 5.3, 1 from 5.4
  std::uint8_t tag_lclosure, tag_cclosure, tag_light_c;  // of a value; 5.1 has one tag for both closures (see c_isC)
  std::uint8_t tag_thread = 8;                           // of an object (GCObject.tt)
  std::uint8_t tag_proto;                                // of an object

  // lobject.h: closures, Proto
  Offset closure_isC = no_field;  // 5.1: lu_byte
  Offset lclosure_p, cclosure_f;
  Offset cclosure_upvalue;  // the first of a C closure's values
  Offset p_size, p_k, p_code, p_lineinfo, p_locvars, p_upvalues, p_source;
  Offset p_sizeupvalues, p_sizek, p_sizecode, p_sizelineinfo, p_sizelocvars, p_linedefined, p_lastlinedefined;
  Offset p_numparams, p_is_vararg;
  Offset p_abslineinfo = no_field, p_sizeabslineinfo = no_field;  // 5.4+: lineinfo holds signed byte deltas
  std::uint8_t upvalue_desc_size;  // of an element of Proto.upvalues; its first word is the name (5.1: the element is
                                   // the name)

  // lobject.h, lstring.h: TString
  Offset string_len, string_shrlen = no_field, string_data;

  // lobject.h: Table, Node
  Offset table_lsizenode, table_node;
  std::uint8_t node_size;
  Offset node_value, node_key, node_key_tt;

  // lstate.h: the state of the collector. Every object begins with next, tt, marked (lobject.h,
  // CommonHeader).
  Offset G_allgc;              // the list of all objects; 5.1: rootgc
  Offset G_currentwhite;       // lu_byte
  Offset G_totalbytes;         // lu_mem; 5.2 and later: without GCdebt
  Offset G_GCdebt = no_field;  // l_mem
  // GCestimate, from G_totalbytes on. 5.2.0 and 5.5 have none.
  Offset estimate_from_totalbytes = no_field;
  Offset G_gckind = no_field;  // lu_byte; 5.3 has no kind except emergency
  Offset L_hookmask;           // its lowest byte
  // 5.2, 5.3: in a C function that has yielded, the place of its function (ldo.c, lua_yieldk).
  Offset ci_extra = no_field;
  Offset table_sizearray, table_array, table_metatable;  // sizearray is called alimit in 5.4, asize in 5.5
  ArrayForm array_form;

  // lobject.h: for decoding values
  std::uint8_t tag_float = 3, tag_integer = 0xff;  // of a value; 0xff: no integer type
  bool boolean_variants = false;                   // from 5.4 on false and true are two tags
  Offset closure_nupvalues, closure_upvals;        // of an LClosure: an array of UpVal pointers
  Offset upval_v;                                  // a pointer to the TValue; 5.4.5 and later: in a union
  Offset udata_metatable, udata_memory;            // offset of the program's own bytes if there are no user values
  Offset udata_nuvalue = no_field, udata_uv = no_field;  // user values (5.4 and later), 16 bytes each; the bytes follow
                                                         // them
  Offset L_gt = no_field;           // 5.1: the TValue of the globals; later: registry[LUA_RIDX_GLOBALS]
  Offset ci_nextraargs = no_field;  // 5.4 and later: int, number of varargs below the function
  std::uint8_t has_varargs = 0xff;  // bits of the byte at p_is_vararg: varargs are on the stack (5.5: PF_VAHID)
  HeapFields heap{};
};

// Of every object, in all releases (lobject.h, CommonHeader): next, then tt, then marked.
inline constexpr std::size_t object_tt = 8;

// How far above a lua_State the global_State is that was allocated with it (lstate.c, LG): right behind it, but
// for the alignment of the TValues in it. In 5.5 it is the other way round.
constexpr Address global_above(const Layout& layout) {
  const Address extra = layout.heap.thread_size - layout.L_size, end = extra + layout.L_size;
  return (end + layout.value_tt - 1) / layout.value_tt * layout.value_tt - extra;
}

}  // namespace luaspy
