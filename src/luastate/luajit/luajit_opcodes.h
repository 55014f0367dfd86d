#pragma once
// The bytecode of LuaJIT 2.1, and that of 2.0. Its opcodes, by number, are from lj_bc.h and lj_debug.c. tests/oracle
// compares them with the headers of each LuaJIT.

#include <array>

#include "luastate/opcode.h"

namespace luaspy::opcode_tables {

// lj_bc.h. An instruction sets argument A of mode dst; with mode base it sets all registers from A
// on, as lj_debug.c sees it. Opcodes that the compiler patches in (BC_JFORI, BC_JITERL …) mean the
// same as the original; BC_JLOOP sets nothing, and where it replaces BC_ITERN, BC_ITERL follows.
//
// The seven bit operators were added in 2026-07 (a2ce8114) and moved the function headers, BC_FUNCF
// to BC_FUNCCW, from 89 on to 96 on. The headers never matter for names: the only one in a function
// is instruction 0, before which nothing is set. So one table serves both.
inline constexpr std::array luajit = {
    event_of("lt", Operands::a_and_bx, plain("ISLT")),
    event_of("lt", Operands::a_and_bx, plain("ISGE")),
    event_of("le", Operands::a_and_bx, plain("ISLE")),
    event_of("le", Operands::a_and_bx, plain("ISGT")),
    event_of("eq", Operands::a_and_bx, plain("ISEQV")),
    event_of("eq", Operands::a_and_bx, plain("ISNEV")),
    event_of("eq", Operands::a, plain("ISEQS")),
    event_of("eq", Operands::a, plain("ISNES")),
    event_of("eq", Operands::a, plain("ISEQN")),
    event_of("eq", Operands::a, plain("ISNEN")),
    event_of("eq", Operands::a, plain("ISEQP")),
    event_of("eq", Operands::a, plain("ISNEP")),
    sets_a("ISTC"),
    sets_a("ISFC"),
    plain("IST"),
    plain("ISF"),
    plain("ISTYPE"),
    plain("ISNUM"),
    sets_a("MOV", Origin::other_register),
    sets_a("NOT"),
    event_of("unm", Operands::bx, sets_a("UNM")),
    event_of("len", Operands::bx, sets_a("LEN")),
    event_of("add", Operands::b, sets_a("ADDVN")),
    event_of("sub", Operands::b, sets_a("SUBVN")),
    event_of("mul", Operands::b, sets_a("MULVN")),
    event_of("div", Operands::b, sets_a("DIVVN")),
    event_of("mod", Operands::b, sets_a("MODVN")),
    event_of("add", Operands::b, sets_a("ADDNV")),
    event_of("sub", Operands::b, sets_a("SUBNV")),
    event_of("mul", Operands::b, sets_a("MULNV")),
    event_of("div", Operands::b, sets_a("DIVNV")),
    event_of("mod", Operands::b, sets_a("MODNV")),
    event_of("add", Operands::b_and_c, sets_a("ADDVV")),
    event_of("sub", Operands::b_and_c, sets_a("SUBVV")),
    event_of("mul", Operands::b_and_c, sets_a("MULVV")),
    event_of("div", Operands::b_and_c, sets_a("DIVVV")),
    event_of("mod", Operands::b_and_c, sets_a("MODVV")),
    event_of("pow", Operands::b_and_c, sets_a("POW")),
    event_of("concat", Operands::above_c, sets_a("CAT")),
    sets_a("KSTR"),
    sets_a("KCDATA"),
    sets_a("KSHORT"),
    sets_a("KNUM"),
    sets_a("KPRI"),
    sets("KNIL", Sets::a_to_b),
    sets_a("UGET", Origin::upvalue),
    plain("USETV"),
    plain("USETS"),
    plain("USETN"),
    plain("USETP"),
    plain("UCLO"),
    event("gc", sets_a("FNEW", Origin::closure)),
    event("gc", sets_a("TNEW")),
    event("gc", sets_a("TDUP")),
    event_of("index", Operands::environment, sets_a("GGET", Origin::global)),
    event_of("newindex", Operands::environment, plain("GSET")),
    event_of("index", Operands::b, sets_a("TGETV")),
    event_of("index", Operands::b, sets_a("TGETS", Origin::field, Key::constant)),
    event_of("index", Operands::b, sets_a("TGETB", Origin::element)),
    event_of("index", Operands::b, sets_a("TGETR")),
    event_of("newindex", Operands::b, plain("TSETV")),
    event_of("newindex", Operands::b, plain("TSETS")),
    event_of("newindex", Operands::b, plain("TSETB")),
    event_of("newindex", Operands::below_a, sets("TSETM", Sets::from_a)),
    event_of("newindex", Operands::b, plain("TSETR")),
    calls("CALLM", Calls::value, Sets::from_a),
    calls("CALL", Calls::value, Sets::from_a),
    tail_calls("CALLMT"),
    tail_calls("CALLT"),
    calls("ITERC", Calls::generator, Sets::from_a),
    calls("ITERN", Calls::value, Sets::from_a),
    sets("VARG", Sets::from_a),
    sets("ISNEXT", Sets::from_a),
    sets("RETM", Sets::from_a),
    plain("RET"),
    plain("RET0"),
    plain("RET1"),
    sets("FORI", Sets::from_a),
    sets("JFORI", Sets::from_a),
    sets("FORL", Sets::from_a),
    sets("IFORL", Sets::from_a),
    sets("JFORL", Sets::from_a),
    sets("ITERL", Sets::from_a),
    sets("IITERL", Sets::from_a),
    sets("JITERL", Sets::from_a),
    plain("LOOP"),
    plain("ILOOP"),
    plain("JLOOP"),
    plain("JMP"),
    sets_a("BNOT"),
    sets_a("BAND"),
    sets_a("BOR"),
    sets_a("BXOR"),
    sets_a("BSHL"),
    sets_a("BSHR"),
    sets_a("BSAR"),
};

// lj_bc.h: A, B and C, or A and D (here Bx); k, Ax and jump are not used.
inline constexpr Encoding luajit_gc64_encoding = {.opcode = {0, 8},
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
                                                  .backwards = true,
                                                  .generator_below = 3,
                                                  .object_above = 2};

inline constexpr Encoding luajit_gc32_encoding = [] {
  Encoding encoding = luajit_gc64_encoding;
  encoding.object_above = 1;
  return encoding;
}();

// 2.0 does not have the opcodes that 2.1 has inserted, nor the bit operators at the end.
inline constexpr std::array luajit20 = [] {
  constexpr std::size_t inserted = 4, added = 7;
  std::array<Opcode, luajit.size() - inserted - added> opcodes{};
  std::size_t count = 0;
  for (const Opcode& opcode : luajit) {
    const std::string_view name = opcode.name;
    const bool is_inserted = name == "ISTYPE" || name == "ISNUM" || name == "TGETR" || name == "TSETR";
    if (!is_inserted && count < opcodes.size()) opcodes[count++] = opcode;
  }
  return opcodes;
}();
inline constexpr Encoding luajit20_encoding = [] {
  Encoding encoding = luajit_gc32_encoding;
  encoding.opcodes = luajit20;
  return encoding;
}();

}  // namespace luaspy::opcode_tables
