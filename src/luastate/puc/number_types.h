#pragma once
// The types of a Lua's numbers: lua_Number and lua_Integer (luaconf.h). A program may be built with others
// than double and 64-bit integers: LUA_32BITS, LUA_FLOAT_TYPE, LUA_INT_TYPE from 5.3 on, LUA_NUMBER before.
// Where an object has its fields depends on them only if lua_Number is long double (layouts.cpp, wide()).

#include <cstdint>
#include <span>

#include "base/memory.h"
#include "luastate/value.h"

namespace luaspy {

struct NumberTypes {
  // Of floats; in 5.1 and 5.2, of all numbers, which may be integers. float80: long double of x86-64.
  enum class Number : std::uint8_t { unknown, float32, float64, float80, int32, int64 };
  enum class Integer : std::uint8_t { unknown, int32, int64 };  // 5.3 and later
  Number number = Number::unknown;
  Integer integer = Integer::unknown;
  bool operator==(const NumberTypes&) const = default;
};

// Of the word that a Value begins with: where smaller types are, and what they leave as it was.
inline std::uint32_t low_half(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
inline std::uint32_t high_half(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

// The number in a Value (lobject.h), of which `bytes` has all bytes. Of an unknown type: only if all types
// that it can have make the same of it. Types that are smaller than a pointer leave the upper half of a Value as it
// was, which is mostly the upper half of an address.
Value load_number(NumberTypes::Number type, std::span<const std::byte> bytes);
Value load_integer(NumberTypes::Integer type, std::span<const std::byte> bytes);

// Significant digits with which tostring() shows a number (luaconf.h, LUA_NUMBER_FMT), and those with which it
// does so if the number cannot be read back from these (5.5: LUA_NUMBER_FMT_N).
struct Digits {
  int usual, most;
};
Digits digits_of(NumberTypes::Number type, bool is_lua55);

}  // namespace luaspy
