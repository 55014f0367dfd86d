#include "luastate/puc/find_number_types.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numbers>

#include "image54.h"
#include "luastate/luas.h"
#include "luastate/puc/checked_sizes.h"

namespace luaspy::number_types_test {
namespace {

using Number = NumberTypes::Number;
using Integer = NumberTypes::Integer;
using Type = Value::Type;

constexpr std::uint64_t of_address = 0x00007f12;  // the upper half that a smaller number leaves in a Value

std::array<std::byte, 8> bytes_of(std::uint64_t word) { return std::bit_cast<std::array<std::byte, 8>>(word); }
std::uint64_t small(std::uint32_t number) { return of_address << 32 | number; }
std::uint64_t bits(double number) { return std::bit_cast<std::uint64_t>(number); }

std::array<std::byte, 16> long_bytes_of(long double number) {
  std::array<std::byte, 16> bytes{};
  bytes.fill(std::byte{0xaa});  // only 10 are written
  std::memcpy(bytes.data(), &number, 10);
  return bytes;
}

std::string number_text(std::string_view row_name, NumberTypes types, const Value& value) {
  const auto row = std::ranges::find(layouts(), row_name, &Layout::name);
  REQUIRE(row != layouts().end());
  return PucLua(*row, types).number_text(value);
}

// What a state of 5.4 shows whose math library has these.
NumberTypes learned(const std::vector<std::pair<std::string, Image54::Tagged>>& math) {
  Image54 image;
  const Address G = image.state({{"math", image.fields(math)}});
  return find_number_types(image, Image54::lua(), G);
}

class CodeAt : public Memory {
 public:
  CodeAt(Address start, std::span<const std::uint8_t> code) : start_(start), code_(std::as_bytes(code)) {}
  bool read(Address address, std::span<std::byte> into) const override {
    if (address < start_ || address - start_ > code_.size() || into.size() > code_.size() - (address - start_))
      return false;
    std::ranges::copy(code_.subspan(address - start_, into.size()), into.begin());
    return true;
  }

 private:
  Address start_;
  std::span<const std::byte> code_;
};

}  // namespace

TEST_CASE("a number is read as its Lua has it", "[unit]") {
  CHECK(load_number(Number::float64, bytes_of(bits(0.1))).number() == 0.1);
  CHECK(load_number(Number::float32, bytes_of(small(std::bit_cast<std::uint32_t>(0.25F)))).number() == 0.25);
  CHECK(load_number(Number::int32, bytes_of(small(0xfffffffe))).integer() == -2);
  CHECK(load_number(Number::int64, bytes_of(std::uint64_t{1} << 40)).integer() == std::int64_t{1} << 40);
  CHECK(load_integer(Integer::int32, bytes_of(small(0x80000000))).integer() == std::numeric_limits<int>::min());
  CHECK(load_integer(Integer::int64, bytes_of(small(7))).integer() == static_cast<std::int64_t>(small(7)));
}

TEST_CASE("a number of 80 bits keeps all of them", "[unit]") {
  for (const long double number : {1.0L, -1.0L / 3, 1e4000L, -5e-324L, std::numeric_limits<long double>::infinity(),
                                   -std::numeric_limits<long double>::infinity()})
    CHECK(load_number(Number::float80, long_bytes_of(number)).long_number() == number);
  CHECK(
      std::isnan(load_number(Number::float80, long_bytes_of(std::numeric_limits<long double>::quiet_NaN())).number()));
  CHECK(load_number(Number::float80, long_bytes_of(0.0L)).number() == 0);
  CHECK(std::signbit(load_number(Number::float80, long_bytes_of(-0.0L)).number()));
  CHECK(load_number(Number::float80, long_bytes_of(0.5L)).number() == 0.5);
}

TEST_CASE("of a number whose type is not known, only what all types agree on is shown", "[unit]") {
  CHECK(load_number(Number::unknown, bytes_of(bits(1.5))).number() == 1.5);
  CHECK(load_number(Number::unknown, bytes_of(0)).type == Type::number);
  CHECK(load_number(Number::unknown, bytes_of(small(0x3f800000))).type == Type::unknown_number);
  CHECK(load_number(Number::unknown, long_bytes_of(1.0L)).type == Type::unknown_number);
  CHECK(load_integer(Integer::unknown, bytes_of(7)).integer() == 7);
  CHECK(load_integer(Integer::unknown, bytes_of(~std::uint64_t{6})).integer() == -7);
  CHECK(load_integer(Integer::unknown, bytes_of(std::uint64_t{1} << 62)).integer() == std::int64_t{1} << 62);
  CHECK(load_integer(Integer::unknown, bytes_of(small(7))).type == Type::unknown_number);
}

TEST_CASE("the math library shows the types of numbers", "[unit]") {
  constexpr std::uint8_t number = 19, integer = 3;
  const std::uint64_t pi = bits(std::numbers::pi), small_pi = small(std::bit_cast<std::uint32_t>(3.14159265F));
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max(), small_most = small(0x7fffffff);
  CHECK(learned({{"pi", {pi, number}}, {"maxinteger", {most, integer}}}) ==
        NumberTypes{Number::float64, Integer::int64});
  CHECK(learned({{"pi", {small_pi, number}}, {"maxinteger", {small_most, integer}}}) ==
        NumberTypes{Number::float32, Integer::int32});
  CHECK(learned({{"pi", {small_pi, number}}, {"maxinteger", {most, integer}}}) ==
        NumberTypes{Number::float32, Integer::int64});
  SECTION("not if it has something else there, or is missing") {
    CHECK(learned({{"pi", {bits(3.0), number}}, {"maxinteger", {5, integer}}}) == NumberTypes{});
    CHECK(learned({{"pi", {pi, integer}}, {"maxinteger", {most, number}}}) == NumberTypes{});
    CHECK(learned({}) == NumberTypes{});
    Image54 image;
    CHECK(find_number_types(image, Image54::lua(), image.state({})) == NumberTypes{});
  }
  SECTION("a Lua is made for each pair of types, once") {
    Image54 image;
    const Address G = image.state({{"math", image.fields({{"pi", {small_pi, number}}})}});
    const Lua& knows = Image54::lua().with_number_types(image, G);
    CHECK(&knows != &Image54::lua());
    CHECK(&knows == &Image54::lua().with_number_types(image, G));
    CHECK(knows.name() == Image54::lua().name());
    const auto slot = [&](std::uint32_t half) {
      std::array<std::byte, 16> bytes{};
      const std::uint64_t word = small(half);
      std::memcpy(bytes.data(), &word, sizeof word);
      bytes[8] = std::byte{number};
      return bytes;
    };
    CHECK(knows.load_value(slot(0x3f800000), 0).number() == 1);
    CHECK(Image54::lua().load_value(slot(0x3f800000), 0).type == Type::unknown_number);
  }
}

// luaL_checkversion_ as gcc writes it: cmp rsi, imm; jne; ret; lea rsi, [rip + …], and the text 256 bytes on.
TEST_CASE("the size that a core compares shows the types of numbers", "[unit]") {
  constexpr Address near = 0x400200;
  const auto sizes_of = [&](std::vector<std::uint8_t> compare) {
    std::vector<std::uint8_t> code = std::move(compare);
    const std::array<std::uint8_t, 10> rest = {0x75, 0x01, 0xc3, 0x48, 0x8d, 0x35, 0xf9, 0x00, 0x00, 0x00};
    code.insert(code.end(), rest.begin(), rest.end());
    const std::size_t text_at = code.size() + 0xf9;
    code.resize(512);
    constexpr std::string_view text = "core and library have incompatible numeric types";
    std::memcpy(code.data() + text_at, text.data(), text.size());
    const std::optional<CheckedSizes> sizes = find_checked_sizes(CodeAt(near, code), near);
    return sizes ? std::pair(sizes->integer, sizes->number) : std::pair(std::size_t{0}, std::size_t{0});
  };
  using Sizes = std::pair<std::size_t, std::size_t>;
  CHECK(sizes_of({0x48, 0x81, 0xfe, 0x88, 0, 0, 0}) == Sizes{8, 8});
  CHECK(sizes_of({0x48, 0x83, 0xfe, 0x44}) == Sizes{4, 4});
  CHECK(sizes_of({0x48, 0x81, 0xfe, 0x84, 0, 0, 0}) == Sizes{8, 4});
  CHECK(sizes_of({0x48, 0x81, 0xfe, 0x90, 0, 0, 0}) == Sizes{8, 16});
  CHECK(sizes_of({0x48, 0x83, 0xfe, 0x48}) == Sizes{4, 8});
  CHECK(sizes_of({0x48, 0x83, 0xfe, 0x45}) == Sizes{0, 0});
  CHECK(sizes_of({0x48, 0x83, 0xfe, 0x44, 0x48, 0x81, 0xfe, 0x88, 0, 0, 0}) == Sizes{0, 0});
}

TEST_CASE("numbers are written as their Lua writes them", "[unit]") {
  const NumberTypes single{Number::float32, Integer::int32}, extended{Number::float80, Integer::int64};
  const Value tenth(Type::number, bits(static_cast<double>(0.1F)));
  CHECK(number_text("5.4.3-5.4.9", single, tenth) == "0.1");
  CHECK(number_text("5.5.0-5.5.1", single, tenth) == "0.1");
  CHECK(number_text("5.5.0-5.5.1", single, {Type::number, bits(static_cast<double>(1 / 3.0F))}) == "0.333333343");
  CHECK(number_text("5.1.0-5.1.5", single, {Type::number, bits(16777216)}) == "1.677722e+07");
  const Value third = load_number(Number::float80, long_bytes_of(1 / 3.0L));
  CHECK(number_text("5.4.3-5.4.9 with long double", extended, third) == "0.3333333333333333333");
  CHECK(number_text("5.5.0-5.5.1 with long double", extended, third) == "0.333333333333333333342");
  CHECK(number_text("5.3.4-5.3.6 with long double", extended, load_number(Number::float80, long_bytes_of(2.0L))) ==
        "2.0");
}

TEST_CASE("rows of builds with long double are tried when no usual row fits", "[unit]") {
  std::size_t wide = 0;
  for (const Layout& row : layouts()) {
    if (row.value_size == 16) continue;
    INFO(row.name);
    ++wide;
    CHECK((row.value_size == 32 && row.value_tt == 16));
    CHECK(row.G_registry % 16 == 0);
    CHECK(row.node_size % 16 == 0);
    CHECK(row.cclosure_upvalue % 16 == 0);
    CHECK(row.heap.upvalue_size % 16 == 0);
    CHECK(row.heap.global_size % 16 == 0);
    CHECK((row.heap.thread_size - row.L_size + global_above(row)) % 16 == 0);
  }
  CHECK(2 * wide == layouts().size());
  for (const std::vector<const Lua*>& layouts :
       {layouts_for("5.3.6"), layouts_for("5.4.1"), layouts_for("5.?"), all_layouts()}) {
    const auto is_wide = [](const Lua* row) { return row->slot_size() == 32; };
    const auto first = std::ranges::find_if(layouts, is_wide);
    CHECK(first != layouts.end());
    CHECK(std::none_of(first, layouts.end(), [](const Lua* row) { return row->slot_size() == 16; }));
  }
  CHECK(layouts_for("5.4.1")[0]->name() == "Lua 5.4.1");
  CHECK(layouts_for("5.4.1")[4]->name() == "Lua 5.4.1 with long double");
}

}  // namespace luaspy::number_types_test
