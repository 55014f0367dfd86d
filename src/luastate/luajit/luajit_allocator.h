#pragma once
// LuaJIT's own allocator (lj_alloc.c, which comes from dlmalloc), and the areas of its machine code
// (lj_mcode.c). Both are the same in 2.1.0-beta3 (2017) to 2026, and with 32 and 64-bit references.
//
//   global_State.allocd ─▶ malloc_state: smallmap treemap dvsize topsize dv top … smallbins[66]
//                                        treebins[32] seg: base size next ─▶ base size next ─▶ … 0
//   segment: | chunk | chunk | … | top | TOP_FOOT |   or   | chunk | … | link | fenceposts |
//   chunk mapped alone: | 1 | size, in use | bytes … | fencepost | 0 |
//   area of machine code: | next area | size | machine code … |

#include <optional>

#include "base/resident_memory.h"
#include "luastate/allocator.h"
#include "luastate/luajit/luajit_layout.h"

namespace luaspy {

// The allocator behind global_State.allocd. nullopt: it is not LuaJIT's own, or not all of what
// makes it one was right. `layout` needs G_gc. `space` bounds what is walked.
std::optional<AllocatorMemory> luajit_allocator(const Memory& memory, const LuajitLayout& layout,
                                                const AddressSpace& space, Address G);

// `taken`: memory that is known to be something else, ascending and disjoint. Areas of machine code
// to which the JIT compiler is writing are not executable meanwhile, and are not found.
SharedLuaMemory luajit_shared_memory(const Memory& memory, const ResidentMemory& resident,
                                     std::span<const AddressRange> taken);

}  // namespace luaspy
