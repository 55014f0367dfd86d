#pragma once
// How a Lua packs its instructions, and what an opcode means for finding the name of a value. The
// tables are in puc/puc_opcodes.h and luajit/luajit_opcodes.h; one algorithm reads all of them
// (bytecode.cpp).

#include <cstdint>
#include <span>
#include <string_view>

namespace luaspy {

// How bytecode is encoded: opcode numbers and argument widths (lopcodes.h) differ only between
// minor versions. All releases of LuaJIT 2.1 share one encoding; only the register that holds the
// object of a method call depends on the pointer size (LJ_FR2). LuaJIT 2.0 numbers its opcodes
// differently.
enum class Bytecode : std::uint8_t { lua51, lua52, lua53, lua54, lua55, luajit, luajit_gc32, luajit20 };
constexpr bool is_luajit(Bytecode bytecode) { return bytecode >= Bytecode::luajit; }

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
  generator,   // 5.1, LuaJIT: the iterator, which is in a register
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
  std::span<const std::string_view> events{};  // for Calls::event_in_c, by number
  // LuaJIT: the instruction that set a register is searched backwards from the call, ignoring
  // jumps.
  bool backwards = false;
  int generator_below = 0;  // how far below A an iterator is kept
  // LuaJIT: how far above a method its object is put, by the instruction before; 0: OP_SELF does
  // it.
  int object_above = 0;
};

const Encoding& encoding_of(Bytecode bytecode);  // luas.cpp

// What the tables are written with.
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

}  // namespace opcode_tables
}  // namespace luaspy
