#include "luastate/puc/number_types.h"

#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "luastate/puc/checked_sizes.h"
#include "luastate/puc/puc_tables.h"

namespace luaspy {
namespace {

using Number = NumberTypes::Number;
using Integer = NumberTypes::Integer;

constexpr std::uint32_t highest_of_address = 0x7fff;  // upper half of a user-space address on LP64

std::uint32_t low_half(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint32_t high_half(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
std::int64_t extended(std::uint32_t half) { return static_cast<std::int32_t>(half); }

Value of_double(double number) { return {Value::Type::number, std::bit_cast<std::uint64_t>(number)}; }
Value of_integer(std::int64_t number) { return {Value::Type::integer, static_cast<std::uint64_t>(number)}; }

// The type with which `bytes` are this number, which must not be one that two types agree on.
Number type_of(std::span<const std::byte> bytes, double expected) {
  const auto is = [&](Number type) {
    const double number = load_number(type, bytes).number();
    const double precision = type == Number::float32 ? 1e-6 : 1e-14;
    return std::abs(number - expected) <= precision * expected;
  };
  if (bytes.size() > sizeof(double)) return is(Number::float80) ? Number::float80 : Number::unknown;
  return is(Number::float64) ? Number::float64 : is(Number::float32) ? Number::float32 : Number::unknown;
}

// math.huge of an integer type: HUGE_VAL, converted. Compilers saturate; processors give the lowest number.
Number integer_type_of_huge(std::uint64_t word) {
  constexpr std::uint64_t highest = 0x7fffffffffffffff, lowest = highest + 1;
  if (word == highest || word == lowest) return Number::int64;
  return low_half(word) == low_half(highest >> 32) || low_half(word) == high_half(lowest) ? Number::int32
                                                                                          : Number::unknown;
}

Integer type_of_highest(std::uint64_t word) {
  constexpr std::uint64_t highest = 0x7fffffffffffffff;
  if (word == highest) return Integer::int64;
  return low_half(word) == high_half(highest) ? Integer::int32 : Integer::unknown;
}

// lstate.h of 5.2 and 5.3: global_State.version follows mainthread, and points at a constant, 502 or 503.
Number type_of_version(const Memory& memory, const Layout& layout, Address G) {
  const bool is_52 = layout.bytecode == Bytecode::lua52;
  if (!is_52 && layout.bytecode != Bytecode::lua53) return Number::unknown;
  const Address at = memory.get<Address>(G + layout.G_mainthread + sizeof(Address)).value_or(0);
  std::array<std::byte, 16> bytes;
  const auto number = std::span(bytes).first(layout.value_tt);
  return plausible_pointer(at, 4) && memory.read(at, number) ? type_of(number, is_52 ? 502 : 503) : Number::unknown;
}

// What the state's values do not show, its machine code does, if it can be read.
NumberTypes completed(NumberTypes types, const Memory& memory, const PucLua& lua, Address G) {
  const bool has_integers = lua.layout().tag_integer != 0xff;
  if (!has_integers || (types.number != Number::unknown && types.integer != Integer::unknown)) return types;
  const std::optional<CheckedSizes> sizes = find_checked_sizes(memory, lua.allocation_function(memory, G));
  if (!sizes) return types;
  const Number number = sizes->number == sizeof(float)    ? Number::float32
                        : sizes->number == sizeof(double) ? Number::float64
                                                          : Number::float80;
  const Integer integer = sizes->integer == sizeof(std::int32_t) ? Integer::int32 : Integer::int64;
  // Another Lua's, if it does not fit.
  if ((number == Number::float80) != (lua.layout().value_tt > sizeof(double))) return types;
  if (types.number == Number::unknown) types.number = number;
  if (types.number == number && types.integer == Integer::unknown) types.integer = integer;
  return types;
}

NumberTypes of_values(const Memory& memory, const PucLua& lua, Address G) {
  const Layout& layout = lua.layout();
  const TableForm form = lua.find_table_form(memory, G).value_or(lua.stock_table_form());
  Address math = 0;
  if (const Address loaded = loaded_table(memory, lua, form, G); loaded != 0) {
    visit_table(memory, lua, form, loaded, [&](const TableEntry& entry) {
      if (entry.key == "math" && is_table_tag(lua, entry.tag)) math = entry.value;
      return math == 0;
    });
  }
  NumberTypes types;
  types.number = type_of_version(memory, layout, G);
  const bool is_wide = layout.value_tt > sizeof(double);
  if (is_wide && types.number == Number::unknown) types.number = Number::float80;  // no other type is as large
  Number of_huge = Number::unknown;
  bool is_three = false;
  if (math == 0) return types;
  visit_table(memory, lua, form, math, [&](const TableEntry& entry) {
    if (entry.tag == layout.tag_integer) {
      if (entry.key == "maxinteger") types.integer = type_of_highest(entry.value);
    } else if (entry.tag == layout.tag_float && entry.key == "pi") {
      if (is_wide || types.number == Number::unknown) types.number = type_of(entry.bytes, std::numbers::pi);
      is_three = low_half(entry.value) == 3;
    } else if (entry.tag == layout.tag_float && entry.key == "huge") {
      of_huge = integer_type_of_huge(entry.value);
    }
    return true;
  });
  const bool may_be_integers = layout.tag_integer == 0xff && !is_wide;
  if (types.number == Number::unknown && may_be_integers && is_three) types.number = of_huge;
  return types;
}

}  // namespace

NumberTypes learn_number_types(const Memory& memory, const PucLua& lua, Address G) {
  return completed(of_values(memory, lua, G), memory, lua, G);
}

Value load_number(Number type, std::span<const std::byte> bytes) {
  const auto word = load<std::uint64_t>(bytes, 0);
  switch (type) {
    case Number::float32:
      return of_double(static_cast<double>(std::bit_cast<float>(low_half(word))));
    case Number::float64:
      return {Value::Type::number, word};
    case Number::float80: {
      Value value(Value::Type::number, word);
      value.exponent = load<std::uint16_t>(bytes, sizeof word);
      constexpr std::uint16_t sign = 0x8000;
      if (value.exponent == sign) return of_double(-0.0);
      return value.exponent != 0 ? value : of_double(0);  // or a number below 10^-4931
    }
    case Number::int32:
      return of_integer(extended(low_half(word)));
    case Number::int64:
      return of_integer(static_cast<std::int64_t>(word));
    case Number::unknown:
      break;
  }
  const bool is_double = bytes.size() == sizeof word && (word == 0 || high_half(word) > highest_of_address);
  return is_double ? Value(Value::Type::number, word) : Value(Value::Type::unknown_number, low_half(word));
}

Value load_integer(Integer type, std::span<const std::byte> bytes) {
  const auto word = load<std::uint64_t>(bytes, 0);
  const std::int64_t small = extended(low_half(word)), large = static_cast<std::int64_t>(word);
  switch (type) {
    case Integer::int32:
      return of_integer(small);
    case Integer::int64:
      return of_integer(large);
    case Integer::unknown:
      break;
  }
  const bool is_large = small == large || high_half(word) > highest_of_address;
  return is_large ? of_integer(large) : Value(Value::Type::unknown_number, low_half(word));
}

Digits digits_of(Number type, bool is_lua55) {
  switch (type) {
    case Number::float32:
      return {7, 9};
    case Number::float80:
      return {19, 21};
    default:
      return is_lua55 ? Digits{15, 17} : Digits{14, 17};
  }
}

}  // namespace luaspy
