#include "luastate/puc/find_number_types.h"

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

NumberTypes find_number_types(const Memory& memory, const PucLua& lua, Address G) {
  return completed(of_values(memory, lua, G), memory, lua, G);
}

const Lua& PucLua::with_number_types(const Memory& memory, Address G) const {
  const bool has_integers = layout_.tag_integer != 0xff;
  const bool knows_integers = !has_integers || numbers_.integer != NumberTypes::Integer::unknown;
  if (numbers_.number != NumberTypes::Number::unknown && knows_integers) return *this;
  const NumberTypes types = find_number_types(memory, *this, G);
  if (types == numbers_) return *this;
  const std::lock_guard lock(mutex_);
  auto& numbered = numbered_[{types.number, types.integer}];
  if (numbered == nullptr) numbered = std::make_unique<const PucLua>(layout_, types);
  return *numbered;
}

}  // namespace luaspy
