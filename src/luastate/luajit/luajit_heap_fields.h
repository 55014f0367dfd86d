#pragma once
// Where a LuaJIT has what a walk of its heap needs beside the fields of luajit_layout.h. The places
// differ from release to release, and are found in the live GG_State (lj_dispatch.h): the main
// thread, the global_State, jit_State, the dispatch table, bytecode. Names are LuaJIT's own.

#include <optional>

#include "base/memory.h"
#include "luastate/luajit/ffi_callbacks.h"
#include "luastate/luajit/luajit_layout.h"

namespace luaspy {

// lj_obj.h, SBuf: three pointers, of 8 or 4 bytes each; in 2.0 one pointer and two counts.
enum class BufferForm : std::uint8_t { pointers, references, counts };

// Bytes, from the global_State on. no_field: not found, or never used.
struct LuajitHeapFields {
  Offset G_strtab = no_field;   // the table of strings: an address, then mask and num (uint32_t)
  bool aligned_strings = true;  // strings are as big as lj_str_size (lj_str.h) says, from 2020-06 on
  Offset G_tmpbuf = no_field;   // SBuf
  BufferForm tmpbuf_form = BufferForm::pointers;
  Offset G_irbuf = no_field;      // jit_State.irbuf; the next fields have the same distances in all releases
  Offset trace_after_irbuf = 56;  // jit_State.trace; 48 in 2.0
  Offset G_k64 = no_field;        // 2.0: jit_State.k64, arrays of 64-bit constants (lj_ir.c)
  Offset G_curtrace = no_field;   // jit_State.cur
  std::uint32_t metamethods = 0;  // how many names of metamethods gcroot has
  Address ctype_state = 0;        // CTState (lj_ctype.h); 0: nothing has loaded ffi
  Offset cts_cbid = no_field;     // CTState.cb.cbid; the table of hashes follows, and ends the CTState
  std::uint64_t size = 0;         // of the GG_State
};

// lj_jit.h, jit_State: from irbuf on.
namespace jit_fields {
inline constexpr Offset irtoplim = 8, irbotlim = 12, sizesnap = 20, snapbuf = 24, snapmapbuf = 32, sizesnapmap = 40,
                        postproc = 44, sizetrace_after_trace = 12;
}
// lj_buf.h, SBufExt, from the bytes of a userdata on; lj_obj.h, UDTYPE_BUFFER. Low bits of L are
// flags: is it a copy on write; are the bytes somebody else's?
namespace buffer_fields {
inline constexpr std::uint8_t udtype = 3;
inline constexpr Offset end = 8, begin = 16, L = 24;
inline constexpr Address copy_on_write = 2, not_its_own = 6;
}  // namespace buffer_fields
// The fields of `G`, for which find_globals() has found `layout`. nullopt if there is no table of
// strings: the memory may be changing. Reads up to 16 KiB.
std::optional<LuajitHeapFields> find_heap_fields(const Memory& memory, const LuajitLayout& layout, Address G);

}  // namespace luaspy
