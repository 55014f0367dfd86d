#pragma once
// How each Lua packs its instructions, and the table of its opcodes. Pure data: widths and places
// are from lopcodes.h and lj_bc.h. One algorithm reads all of it (bytecode.cpp).

#include <array>
#include <cstddef>

#include "luastate/luajit/luajit_opcodes.h"
#include "luastate/puc/layout.h"
#include "luastate/puc/puc_opcodes.h"

namespace luaspy {
namespace opcode_tables {

// By Bytecode. 5.1 to 5.3 have no argument k, and 5.1 has no Ax. LuaJIT has A, B and C, or A and D
// (here Bx); its k, Ax and jump are not used.
inline constexpr std::array<Encoding, 7> encodings = [] {
  constexpr Encoding six_bits = {.opcode = {0, 6},
                                 .a = {6, 8},
                                 .b = {23, 9},
                                 .c = {14, 9},
                                 .k = {14, 1},
                                 .bx = {14, 18},
                                 .ax = {6, 26},
                                 .jump = {14, 18},
                                 .from = {23, 9},
                                 .opcodes = lua52,
                                 .environment = Environment::local_variable,
                                 .takes_jumps = false,
                                 .names_at_call = false,
                                 .event_prefix = "__"};
  constexpr Encoding seven_bits = {.opcode = {0, 7},
                                   .a = {7, 8},
                                   .b = {16, 8},
                                   .c = {24, 8},
                                   .k = {15, 1},
                                   .bx = {15, 17},
                                   .ax = {7, 25},
                                   .jump = {7, 25},
                                   .from = {16, 8},
                                   .opcodes = lua54,
                                   .environment = Environment::any_variable,
                                   .takes_jumps = false,
                                   .names_at_call = false,
                                   .event_prefix = ""};
  constexpr Encoding eight_bits = {.opcode = {0, 8},
                                   .a = {8, 8},
                                   .b = {24, 8},
                                   .c = {16, 8},
                                   .k = {16, 16},
                                   .bx = {16, 16},
                                   .ax = {16, 16},
                                   .jump = {16, 16},
                                   .from = {16, 16},
                                   .opcodes = luajit,
                                   .environment = Environment::none,
                                   .takes_jumps = false,
                                   .names_at_call = false,
                                   .event_prefix = "__",
                                   .backwards = true,
                                   .generator_below = 3,
                                   .object_above = 2};
  std::array<Encoding, 7> all = {six_bits, six_bits, six_bits, seven_bits, seven_bits, eight_bits, eight_bits};
  Encoding& first = all[static_cast<std::size_t>(Bytecode::lua51)];
  first.opcodes = lua51;
  first.environment = Environment::none;
  first.takes_jumps = first.names_at_call = true;
  all[static_cast<std::size_t>(Bytecode::lua53)].opcodes = lua53;
  all[static_cast<std::size_t>(Bytecode::lua55)].opcodes = lua55;
  all[static_cast<std::size_t>(Bytecode::luajit_gc32)].object_above = 1;
  return all;
}();

}  // namespace opcode_tables

constexpr const Encoding& encoding_of(Bytecode bytecode) {
  return opcode_tables::encodings[static_cast<std::size_t>(bytecode)];
}

}  // namespace luaspy
