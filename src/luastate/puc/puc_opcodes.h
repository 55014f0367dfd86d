#pragma once
// The bytecode of 5.1 to 5.5. Its opcodes, by number, are from lopcodes.h (order), lopcodes.c (which
// opcodes set A) and ldebug.c (which origins of a value give it a name). tests/oracle compares them
// with the headers of each Lua.

#include <array>
#include <cstddef>

#include "luastate/opcode.h"

namespace luaspy::opcode_tables {

inline constexpr std::array lua51 = {
    sets_a("MOVE", Origin::other_register),
    sets_a("LOADK"),
    sets_a("LOADBOOL"),
    sets("LOADNIL", Sets::a_to_b),
    sets_a("GETUPVAL", Origin::upvalue),
    event("index", sets_a("GETGLOBAL", Origin::global)),
    event("index", sets_a("GETTABLE", Origin::field, Key::constant_of_rk)),
    event("newindex", plain("SETGLOBAL")),
    plain("SETUPVAL"),
    event("newindex", plain("SETTABLE")),
    sets_a("NEWTABLE"),
    event("index", {.name = "SELF", .sets = Sets::a_and_next, .origin = Origin::method, .key = Key::constant_of_rk}),
    event("add", sets_a("ADD")),
    event("sub", sets_a("SUB")),
    event("mul", sets_a("MUL")),
    event("div", sets_a("DIV")),
    event("mod", sets_a("MOD")),
    event("pow", sets_a("POW")),
    event("unm", sets_a("UNM")),
    sets_a("NOT"),
    event("len", sets_a("LEN")),
    event("concat", sets_a("CONCAT")),
    flows("JMP", Flow::jump),
    event("eq", plain("EQ")),
    event("lt", plain("LT")),
    event("le", plain("LE")),
    sets_a("TEST"),
    sets_a("TESTSET"),
    calls("CALL", Calls::value, Sets::from_a),
    tail_calls("TAILCALL"),
    plain("RETURN"),
    flows("FORLOOP", Flow::jump, Sets::a),
    flows("FORPREP", Flow::jump, Sets::a),
    calls("TFORLOOP", Calls::generator, Sets::from_a_plus_2),
    flows("SETLIST", Flow::raw_word),
    plain("CLOSE"),
    flows("CLOSURE", Flow::captures, Sets::a),
    sets_a("VARARG"),
};

inline constexpr std::array lua52 = {
    sets_a("MOVE", Origin::other_register),
    sets_a("LOADK", Origin::constant),
    sets_a("LOADKX", Origin::extra_constant),
    sets_a("LOADBOOL"),
    sets("LOADNIL", Sets::a_to_a_plus_b),
    sets_a("GETUPVAL", Origin::upvalue),
    event("index", sets_a("GETTABUP", Origin::upvalue_field, Key::rk)),
    event("index", sets_a("GETTABLE", Origin::field, Key::rk)),
    event("newindex", plain("SETTABUP")),
    plain("SETUPVAL"),
    event("newindex", plain("SETTABLE")),
    sets_a("NEWTABLE"),
    event("index", sets_a("SELF", Origin::method, Key::rk)),
    event("add", sets_a("ADD")),
    event("sub", sets_a("SUB")),
    event("mul", sets_a("MUL")),
    event("div", sets_a("DIV")),
    event("mod", sets_a("MOD")),
    event("pow", sets_a("POW")),
    event("unm", sets_a("UNM")),
    sets_a("NOT"),
    event("len", sets_a("LEN")),
    event("concat", sets_a("CONCAT")),
    flows("JMP", Flow::jump),
    event("eq", plain("EQ")),
    event("lt", plain("LT")),
    event("le", plain("LE")),
    sets_a("TEST"),  // does not set A by lopcodes.c, but does by findsetreg
    sets_a("TESTSET"),
    calls("CALL", Calls::value, Sets::from_a),
    tail_calls("TAILCALL"),
    plain("RETURN"),
    sets_a("FORLOOP"),
    sets_a("FORPREP"),
    calls("TFORCALL", Calls::iterator, Sets::from_a_plus_2),
    sets_a("TFORLOOP"),
    plain("SETLIST"),
    sets_a("CLOSURE"),
    sets_a("VARARG"),
    plain("EXTRAARG"),
};

inline constexpr std::array lua53 = {
    sets_a("MOVE", Origin::other_register),
    sets_a("LOADK", Origin::constant),
    sets_a("LOADKX", Origin::extra_constant),
    sets_a("LOADBOOL"),
    sets("LOADNIL", Sets::a_to_a_plus_b),
    sets_a("GETUPVAL", Origin::upvalue),
    event("index", sets_a("GETTABUP", Origin::upvalue_field, Key::rk)),
    event("index", sets_a("GETTABLE", Origin::field, Key::rk)),
    event("newindex", plain("SETTABUP")),
    plain("SETUPVAL"),
    event("newindex", plain("SETTABLE")),
    sets_a("NEWTABLE"),
    event("index", sets_a("SELF", Origin::method, Key::rk)),
    event("add", sets_a("ADD")),
    event("sub", sets_a("SUB")),
    event("mul", sets_a("MUL")),
    event("mod", sets_a("MOD")),
    event("pow", sets_a("POW")),
    event("div", sets_a("DIV")),
    event("idiv", sets_a("IDIV")),
    event("band", sets_a("BAND")),
    event("bor", sets_a("BOR")),
    event("bxor", sets_a("BXOR")),
    event("shl", sets_a("SHL")),
    event("shr", sets_a("SHR")),
    event("unm", sets_a("UNM")),
    event("bnot", sets_a("BNOT")),
    sets_a("NOT"),
    event("len", sets_a("LEN")),
    event("concat", sets_a("CONCAT")),
    flows("JMP", Flow::jump),
    event("eq", plain("EQ")),
    event("lt", plain("LT")),
    event("le", plain("LE")),
    plain("TEST"),
    sets_a("TESTSET"),
    calls("CALL", Calls::value, Sets::from_a),
    tail_calls("TAILCALL"),
    plain("RETURN"),
    sets_a("FORLOOP"),
    sets_a("FORPREP"),
    calls("TFORCALL", Calls::iterator, Sets::from_a_plus_2),
    sets_a("TFORLOOP"),
    plain("SETLIST"),
    sets_a("CLOSURE"),
    sets_a("VARARG"),
    plain("EXTRAARG"),
};

inline constexpr std::array lua54 = {
    sets_a("MOVE", Origin::other_register),
    sets_a("LOADI"),
    sets_a("LOADF"),
    sets_a("LOADK", Origin::constant),
    sets_a("LOADKX", Origin::extra_constant),
    sets_a("LOADFALSE"),
    sets_a("LFALSESKIP"),
    sets_a("LOADTRUE"),
    sets("LOADNIL", Sets::a_to_a_plus_b),
    sets_a("GETUPVAL", Origin::upvalue),
    plain("SETUPVAL"),
    event("index", sets_a("GETTABUP", Origin::upvalue_field, Key::constant)),
    event("index", sets_a("GETTABLE", Origin::field, Key::in_register)),
    event("index", sets_a("GETI", Origin::integer_field)),
    event("index", sets_a("GETFIELD", Origin::field, Key::constant)),
    event("newindex", plain("SETTABUP")),
    event("newindex", plain("SETTABLE")),
    event("newindex", plain("SETI")),
    event("newindex", plain("SETFIELD")),
    sets_a("NEWTABLE"),
    event("index", sets_a("SELF", Origin::method, Key::k_flag)),
    sets_a("ADDI"),
    sets_a("ADDK"),
    sets_a("SUBK"),
    sets_a("MULK"),
    sets_a("MODK"),
    sets_a("POWK"),
    sets_a("DIVK"),
    sets_a("IDIVK"),
    sets_a("BANDK"),
    sets_a("BORK"),
    sets_a("BXORK"),
    sets_a("SHRI"),
    sets_a("SHLI"),
    sets_a("ADD"),
    sets_a("SUB"),
    sets_a("MUL"),
    sets_a("MOD"),
    sets_a("POW"),
    sets_a("DIV"),
    sets_a("IDIV"),
    sets_a("BAND"),
    sets_a("BOR"),
    sets_a("BXOR"),
    sets_a("SHL"),
    sets_a("SHR"),
    calls("MMBIN", Calls::event_in_c, Sets::nothing),
    calls("MMBINI", Calls::event_in_c, Sets::nothing),
    calls("MMBINK", Calls::event_in_c, Sets::nothing),
    event("unm", sets_a("UNM")),
    event("bnot", sets_a("BNOT")),
    sets_a("NOT"),
    event("len", sets_a("LEN")),
    event("concat", sets_a("CONCAT")),
    event("close", plain("CLOSE")),
    plain("TBC"),
    flows("JMP", Flow::jump),
    event("eq", plain("EQ")),
    event("lt", plain("LT")),
    event("le", plain("LE")),
    plain("EQK"),
    plain("EQI"),
    event("lt", plain("LTI")),
    event("le", plain("LEI")),
    event("lt", plain("GTI")),
    event("le", plain("GEI")),
    plain("TEST"),
    sets_a("TESTSET"),
    calls("CALL", Calls::value, Sets::from_a),
    tail_calls("TAILCALL"),
    event("close", plain("RETURN")),
    plain("RETURN0"),
    plain("RETURN1"),
    sets_a("FORLOOP"),
    sets_a("FORPREP"),
    plain("TFORPREP"),
    calls("TFORCALL", Calls::iterator, Sets::from_a_plus_2),
    sets_a("TFORLOOP"),
    plain("SETLIST"),
    sets_a("CLOSURE"),
    sets_a("VARARG"),
    sets_a("VARARGPREP"),
    plain("EXTRAARG"),
};

// The table of 5.4 with the last two opcodes replaced by four, the shifts by a constant swapped,
// and OP_SELF always with a constant.
inline constexpr std::array lua55 = [] {
  std::array<Opcode, lua54.size() + 2> table;
  for (std::size_t i = 0; i < lua54.size(); ++i) table[i] = lua54[i];
  for (Opcode& opcode : table) {
    if (opcode.name == "SELF") opcode.key = Key::constant;
    else if (opcode.name == "SHRI") opcode.name = "SHLI";
    else if (opcode.name == "SHLI") opcode.name = "SHRI";
  }
  table[lua54.size() - 2] = sets_a("GETVARG", Origin::field, Key::in_register);
  table[lua54.size() - 1] = plain("ERRNNIL");
  table[lua54.size()] = plain("VARARGPREP");
  table[lua54.size() + 1] = plain("EXTRAARG");
  return table;
}();

// ltm.h, TMS of 5.4 and 5.5: the numbers that OP_MMBIN and similar opcodes use.
inline constexpr std::array<std::string_view, 25> events = {
    "index", "newindex", "gc",   "mode", "len", "eq",  "add",  "sub", "mul", "mod",    "pow",  "div",  "idiv",
    "band",  "bor",      "bxor", "shl",  "shr", "unm", "bnot", "lt",  "le",  "concat", "call", "close"};

// lopcodes.h: widths and places of the arguments. 5.1 to 5.3 have no argument k, and 5.1 has no Ax.
// By Bytecode.
inline constexpr std::array<Encoding, 5> puc_encodings = [] {
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
                                 .names_at_call = false};
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
                                   .names_at_call = false};
  std::array<Encoding, 5> all = {six_bits, six_bits, six_bits, seven_bits, seven_bits};
  for (Encoding& encoding : all) encoding.events = events;
  Encoding& first = all[static_cast<std::size_t>(Bytecode::lua51)];
  first.opcodes = lua51;
  first.environment = Environment::none;
  first.takes_jumps = first.names_at_call = true;
  all[static_cast<std::size_t>(Bytecode::lua53)].opcodes = lua53;
  all[static_cast<std::size_t>(Bytecode::lua55)].opcodes = lua55;
  return all;
}();

}  // namespace luaspy::opcode_tables
