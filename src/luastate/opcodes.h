#pragma once
// What each opcode of 5.1 to 5.5 and of LuaJIT means for finding the name of a value. Pure data,
// from lopcodes.h (order, widths), lopcodes.c (which opcodes set A) and ldebug.c (which origins of
// a value give it a name); for LuaJIT from lj_bc.h and lj_debug.c. One algorithm reads all of it
// (bytecode.cpp); tests/oracle compares it with the headers of each Lua.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "luastate/puc/layout.h"

namespace luaspy {

// Which registers an instruction may change, according to ldebug.c (findsetreg; 5.1: symbexec). The
// machine may change more: OP_VARARG fills many registers, OP_SELF of 5.2 and later sets A+1 too.
enum class Sets : std::uint8_t { nothing, a, a_and_next, a_to_b, a_to_a_plus_b, from_a, from_a_plus_2 };

// What an instruction puts into A, as far as that has a name.
enum class Origin : std::uint8_t {
  unnamed,
  other_register,  // `from`
  upvalue,         // `from`
  global,          // 5.1, LuaJIT: a global named by constant Bx
  constant,        // Bx
  extra_constant,  // Ax of the next instruction
  upvalue_field,   // of the table in upvalue B, by key C
  field,           // of the table in register B, by key C
  integer_field,   // of the table in register B, by a number
  method,          // of the object in register B, by key C
  element,         // LuaJIT: of the table in register B, by the number C; has no name
  closure,         // LuaJIT: a new closure of the prototype that is constant Bx
};

// How argument C gives the key of a field or method.
enum class Key : std::uint8_t {
  none,
  constant_of_rk,  // a constant, or a register whose contents are not searched (5.1)
  rk,              // bit 8 of C: a constant; else a register
  k_flag,          // bit k of the instruction: a constant; else a register
  constant,
  in_register,
};

enum class Flow : std::uint8_t {
  next,
  jump,      // by the signed argument
  captures,  // 5.1: OP_CLOSURE is followed by one MOVE or GETUPVAL per upvalue, which are not executed
  raw_word,  // 5.1: OP_SETLIST with C = 0 is followed by a number, not an instruction
};

enum class Calls : std::uint8_t {
  nobody,
  value,       // what is in A; a Lua function then runs in the same luaV_execute (lvm.c)
  tail_value,  // the same, but the callee replaces the caller
  generator,   // 5.1, LuaJIT: the iterator, named like any value
  iterator,    // 5.2 and later: named "for iterator"
  event,       // a metamethod, if it calls anything
  event_in_c,  // the metamethod whose number (ltm.h, TMS) is in C
};

// LuaJIT: the operands whose metatables may hold the metamethod that an instruction calls.
enum class Operands : std::uint8_t {
  none,  // not searched: the collector runs
  a,
  b,
  bx,  // the value in that register
  a_and_bx,
  b_and_c,
  // The last two, moved to where a callee's arguments are: above C and a frame (lj_meta.c,
  // lj_meta_cat).
  above_c,
  below_a,      // the value in the register before A
  environment,  // the closure's environment
};

struct Opcode {
  std::string_view name;  // without OP_
  Sets sets = Sets::nothing;
  Origin origin = Origin::unnamed;
  Key key = Key::none;
  Flow flow = Flow::next;
  Calls calls = Calls::nobody;
  std::string_view event{};  // without "__"
  Operands operands = Operands::none;
};

// A field is a global if the name of its table is "_ENV". Which tables' names count:
enum class Environment : std::uint8_t {
  none,            // 5.1 has opcodes for globals
  local_variable,  // 5.2, 5.3: an upvalue of OP_GETTABUP, or a local at that instruction
  any_variable,    // 5.4, 5.5 (as of 5.4.9): a local or an upvalue, even after moves through registers
};

struct Field {
  std::uint8_t position, width;
  constexpr int of(std::uint32_t instruction) const {
    return static_cast<int>(instruction >> position & ((std::uint32_t{1} << width) - 1));
  }
  // The argument is stored in excess of half the maximum, rounded down.
  constexpr int signed_of(std::uint32_t instruction) const {
    return of(instruction) - static_cast<int>((std::uint32_t{1} << (width - 1)) - 1);
  }
};

struct Encoding {
  Field opcode, a, b, c, k, bx, ax, jump;
  // The source of a move, the number of an upvalue, or the last of the registers set from A on.
  Field from;
  std::span<const Opcode> opcodes;
  Environment environment;
  // 5.1: forward jumps are followed. Later: instructions that they skip are conditional, and give
  // no name.
  bool takes_jumps;
  // 5.1: the active locals are those at the call, not those where the register was set.
  bool names_at_call;
  std::string_view event_prefix;
  // LuaJIT: the instruction that set a register is searched backwards from the call, ignoring
  // jumps.
  bool backwards = false;
  int generator_below = 0;  // how far below A an iterator is kept
  // LuaJIT: how far above a method its object is put, by the instruction before; 0: OP_SELF does
  // it.
  int object_above = 0;
};

namespace opcode_tables {

constexpr Opcode plain(std::string_view name) { return {.name = name}; }
constexpr Opcode sets_a(std::string_view name, Origin origin = Origin::unnamed, Key key = Key::none) {
  return {.name = name, .sets = Sets::a, .origin = origin, .key = key};
}
constexpr Opcode sets(std::string_view name, Sets what) { return {.name = name, .sets = what}; }
constexpr Opcode calls(std::string_view name, Calls what, Sets changed) {
  return {.name = name, .sets = changed, .calls = what};
}
constexpr Opcode tail_calls(std::string_view name) {
  return {.name = name, .sets = Sets::from_a, .calls = Calls::tail_value};
}
constexpr Opcode flows(std::string_view name, Flow flow, Sets changed = Sets::nothing) {
  return {.name = name, .sets = changed, .flow = flow};
}
// The same opcode, marked as one that may call a metamethod.
constexpr Opcode event(std::string_view event_name, Opcode opcode) {
  opcode.calls = Calls::event;
  opcode.event = event_name;
  return opcode;
}
constexpr Opcode event_of(std::string_view event_name, Operands operands, Opcode opcode) {
  opcode = event(event_name, opcode);
  opcode.operands = operands;
  return opcode;
}

inline constexpr std::array lua51 = {
    sets_a("MOVE", Origin::other_register),
    sets_a("LOADK"),
    sets_a("LOADBOOL"),
    sets("LOADNIL", Sets::a_to_b),
    sets_a("GETUPVAL", Origin::upvalue),
    sets_a("GETGLOBAL", Origin::global),
    sets_a("GETTABLE", Origin::field, Key::constant_of_rk),
    plain("SETGLOBAL"),
    plain("SETUPVAL"),
    plain("SETTABLE"),
    sets_a("NEWTABLE"),
    Opcode{.name = "SELF", .sets = Sets::a_and_next, .origin = Origin::method, .key = Key::constant_of_rk},
    sets_a("ADD"),
    sets_a("SUB"),
    sets_a("MUL"),
    sets_a("DIV"),
    sets_a("MOD"),
    sets_a("POW"),
    sets_a("UNM"),
    sets_a("NOT"),
    sets_a("LEN"),
    sets_a("CONCAT"),
    flows("JMP", Flow::jump),
    plain("EQ"),
    plain("LT"),
    plain("LE"),
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

// ltm.h, TMS of 5.4 and 5.5: the numbers that OP_MMBIN and similar opcodes use.
inline constexpr std::array<std::string_view, 25> events = {
    "index", "newindex", "gc",   "mode", "len", "eq",  "add",  "sub", "mul", "mod",    "pow",  "div",  "idiv",
    "band",  "bor",      "bxor", "shl",  "shr", "unm", "bnot", "lt",  "le",  "concat", "call", "close"};

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
