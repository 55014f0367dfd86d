#pragma once
// The state of LuaJIT's FFI, and where it has its table of callbacks.

#include <cstdint>

#include "base/memory.h"
#include "luastate/luajit/luajit_layout.h"

namespace luaspy {

// lj_ctype.h, CTState
namespace cts_fields {
inline constexpr Offset tab = 0, top = 8, sizetab = 12, L = 16, g = 24;
// From cb.cbid on.
inline constexpr Offset sizeid = 8, hash = 24;
inline constexpr std::uint32_t hash_size = 128;  // of uint16_t
}  // namespace cts_fields
// lj_ctype.h, CType: info, size; sib and next have 16 bits; name is a GCRef.
constexpr std::size_t ctype_size(const LuajitLayout& layout) { return layout.gc64 ? 24 : 16; }

// The offset of CTState.cb.cbid (lj_ctype.h) in the CTState at `cts`; no_field: not found. `types`, `top`: CTState.tab
// and top.
//
// What is before it differs from release to release, and from processor to processor: how many registers callbacks
// may use (more from 2022 on), CTState.finalizer (until 2023). What follows is known: the table of hashes, in which
// each type is in the bucket of its name, or of what it is.
Offset find_callbacks(const Memory& memory, const LuajitLayout& layout, Address cts, Address types, std::uint32_t top);

}  // namespace luaspy
