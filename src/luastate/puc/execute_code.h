#pragma once
// Recognises PUC Lua's own native functions: by name where there are symbols, and luaV_execute also
// by its machine code.

#include <cstddef>
#include <span>
#include <string_view>

namespace luaspy {

// By symbol name. Accepts the suffixes that compilers give to parts of functions, and prefixes
// where several Luas are linked into one program.
bool is_execute(std::string_view name);  // luaV_execute
// Only carries a call, without work of its own that a profile would name (ldo.c, lvm.c, lapi.c).
bool is_carrier(std::string_view name);
bool is_collector(std::string_view name);  // a step or a full run of the collector (lgc.c)

// How similar a function's machine code is to luaV_execute's; 0: it cannot be luaV_execute. A
// bytecode interpreter masks opcodes (6 bits up to 5.3, 7 from 5.4), jumps through a table, and
// shifts out A, B and C of every instruction (lopcodes.h). In the folder of each processor.
int interpreter_score(std::span<const std::byte> code);

}  // namespace luaspy
