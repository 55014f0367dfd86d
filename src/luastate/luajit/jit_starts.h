#pragma once
// Where traces may begin in a function, by its bytecode: its entry and its loops. LuaJIT writes its decisions into
// these instructions (lj_trace.c): what is compiled has an opcode with J, what is blacklisted one with I.

#include <functional>
#include <vector>

#include "luastate/jit_reader.h"
#include "luastate/luajit/luajit_layout.h"
#include "luastate/prototype.h"

namespace luaspy {

// `original`: what was at a compiled instruction before (GCtrace.startins); 0: not known.
std::vector<JitStart> find_starts(const LuajitLayout& layout, const Prototype& prototype,
                                  const std::function<std::uint32_t(std::uint32_t instruction)>& original);

}  // namespace luaspy
