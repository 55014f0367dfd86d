#pragma once
// Where a LuaJIT has the state of its compiler: jit_State (lj_jit.h), which is in the GG_State behind the global_State.
// Its fields have the same order in all known releases, and other distances. They are found in the live one.

#include <optional>

#include "luastate/luajit/luajit_heap_fields.h"

namespace luaspy {

// Bytes, from the global_State on. no_field: not found, because nothing was compiled yet.
struct JitFields {
  Offset G_param = no_field, G_penalty = no_field;
  std::uint8_t parameters = 15;  // how many; 14 in 2.0, which has no minstitch
  // All of these, or none: of the first recording on.
  Offset G_curtrace = no_field, G_pc = no_field, G_trace = no_field, G_startpc = no_field;
  // With G_startpc, and from the first abort or the first machine code on.
  Offset G_mcarea = no_field, G_errinfo = no_field;
};

// lj_jit.h
namespace jit_layout {
inline constexpr std::size_t penalty_slots = 64, exit_stub_groups = 16;
inline constexpr unsigned penalty_least = 72, penalty_most = 60000;
// From mcarea on: mctop, mcbot, szmcarea, szallmcarea.
inline constexpr Offset mctop = 8, mcbot = 16, szmcarea = 24, szallmcarea = 32, behind = 40;
// From startpc on.
inline constexpr Offset parent = 8, exitno = 12;
constexpr std::size_t penalty_size(const LuajitLayout& layout) { return layout.gc64 ? 16 : 8; }
}  // namespace jit_layout

// The fields of `G`, for which find_globals() has found `layout`. nullopt: there is no jit_State. Reads 12 KiB, and
// what find_heap_fields() reads.
std::optional<JitFields> find_jit_fields(const Memory& memory, const LuajitLayout& layout, Address G);

}  // namespace luaspy
