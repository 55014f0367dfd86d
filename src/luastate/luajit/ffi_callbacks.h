#pragma once
// Where the state of LuaJIT's FFI has its table of callbacks.

#include <cstdint>

#include "base/memory.h"
#include "luastate/luajit/luajit_layout.h"

namespace luaspy {

// The offset of CTState.cb.cbid (lj_ctype.h) in the CTState at `cts`; no_field: not found. `types`, `top`: CTState.tab
// and top.
//
// What is before it differs from release to release, and from processor to processor: how many registers callbacks
// may use (more from 2022 on), CTState.finalizer (until 2023). What follows is known: the table of hashes, in which
// each type is in the bucket of its name, or of what it is.
Offset find_callbacks(const Memory& memory, const LuajitLayout& layout, Address cts, Address types, std::uint32_t top);

}  // namespace luaspy
