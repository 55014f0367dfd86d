#pragma once
// One value of a target: TValue (lobject.h; lj_obj.h), decoded.

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/memory.h"

namespace luaspy {

struct Value {
  enum class Type : std::uint8_t {
    nil,  // also an empty slot of a table
    boolean,
    integer,  // 5.3 and later
    number,
    string,
    table,
    function,        // a closure, Lua or C
    light_function,  // 5.2 and later: a C function without a closure
    light_userdata,
    userdata,
    thread,
    cdata,  // LuaJIT
    // LuaJIT: the control variable of a loop over pairs() while the loop runs (lj_bc.h,
    // LJ_KEYINDEX).
    key_index,
    unknown_number,  // the type of this Lua's numbers is not known, and so neither is what this one is
    other,           // never visible to a program, or not a value at all
  };
  Type type = Type::nil;
  // Of a number of 80 bits: its sign and exponent, not 0, and `word` is its significand. All others are
  // doubles: 0.
  std::uint16_t exponent = 0;
  std::uint64_t word = 0;  // an object's address; a number's bits; a light value itself

  constexpr Value() = default;
  constexpr Value(Type its_type, std::uint64_t its_word) : type(its_type), word(its_word) {}

  double number() const { return exponent == 0 ? std::bit_cast<double>(word) : static_cast<double>(long_number()); }
  // Of a number of 80 bits. Not of another processor: it has the precision of its own long double.
  long double long_number() const {
    constexpr unsigned sign = 0x8000, no_number = 0x7fff;
    constexpr int bias = 16383, significand_bits = 63;
    const unsigned magnitude = exponent & ~sign;
    const bool is_infinite = word << 1 == 0;
    const long double absolute = magnitude != no_number
                                     ? std::ldexp(static_cast<long double>(word),
                                                  static_cast<int>(magnitude) - bias - significand_bits)
                                 : is_infinite ? HUGE_VALL
                                               : std::nanl("");
    return (exponent & sign) != 0 ? -absolute : absolute;
  }
  bool is_any_number() const { return type == Type::integer || type == Type::number || type == Type::unknown_number; }
  std::int64_t integer() const { return static_cast<std::int64_t>(word); }
  bool is_object(Type which) const { return type == which && word != 0; }
};

// The program's own part of a userdata.
struct Userdata {
  Address bytes = 0;
  Address metatable = 0;  // 0: none
  bool is_file = false;   // LuaJIT: of the io library. PUC shows that only by its metatable.
};

// What a string's header says of its characters.
struct Characters {
  std::uint64_t length = 0;  // bytes
  bool by_pointer = false;   // a pointer to them follows the header; false: they do themselves
};

}  // namespace luaspy
