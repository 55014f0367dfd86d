#include "luastate/puc/number_types.h"

namespace luaspy {
namespace {

using Number = NumberTypes::Number;
using Integer = NumberTypes::Integer;

constexpr std::uint32_t highest_of_address = 0x7fff;  // upper half of a user-space address on LP64

std::int64_t extended(std::uint32_t half) { return static_cast<std::int32_t>(half); }

Value of_double(double number) { return {Value::Type::number, std::bit_cast<std::uint64_t>(number)}; }
Value of_integer(std::int64_t number) { return {Value::Type::integer, static_cast<std::uint64_t>(number)}; }

}  // namespace

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
