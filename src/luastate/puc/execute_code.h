#pragma once
// Which native functions are PUC Lua's own: by their names where there are symbols, luaV_execute by
// its machine code, too.

#include <cstddef>
#include <span>
#include <string_view>

namespace luaspy {

// By names of symbols, with the endings that compilers give to pieces of functions, and prefixes
// where several Luas are linked into one program.
bool is_execute(std::string_view name);  // luaV_execute
bool is_carrier(std::string_view name);  // carries a call and does no work of its own that a profile would name (ldo.c,
                                         // lvm.c, lapi.c)
bool is_collector(std::string_view name);  // a step or a full run of the collector (lgc.c)

// How much a function's machine code looks like luaV_execute's: 0 if it cannot be it. A bytecode
// interpreter masks opcodes (6 bits up to 5.3, 7 from 5.4), jumps through a table, and shifts out
// A, B and C of every instruction (lopcodes.h).
int interpreter_score(std::span<const std::byte> code);

}  // namespace luaspy
