// Values that no Lua creates: pointers into memory with arbitrary contents, and tables that refer
// to themselves. Real values are tested in live/locals_test.cpp.

#include "luastate/value_text.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <map>

#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/puc/puc_lua.h"
#include "luastate/variables.h"

namespace luaspy::value_text_test {
namespace {

// Every address can be read. Most words are pointers to other addresses in it, or possible tags of
// objects or values, so that everything leads further.
class Anything : public Memory {
 public:
  explicit Anything(std::uint64_t seed) : seed_(seed) {}
  bool read(Address address, std::span<std::byte> into) const override {
    reads += 1, bytes += into.size();
    for (std::size_t i = 0; i < into.size(); ++i) {
      const std::uint64_t word = word_at((address + i) / 8);
      into[i] = static_cast<std::byte>(word >> (address + i) % 8 * 8);
    }
    return true;
  }
  mutable std::uint64_t reads = 0, bytes = 0;

 private:
  std::uint64_t word_at(std::uint64_t place) const {
    std::uint64_t x = (place ^ seed_) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    constexpr std::array<std::uint8_t, 14> tags = {4, 5, 6, 7, 8, 10, 20, 38, 68, 69, 70, 71, 72, 84};
    if (place % 2 == 1 && x >> 62 != 0)
      return tags[x % tags.size()] | (4 + (x >> 8) % 9) << 8 | (x & 0x7f) << 32 | (x >> 20 & 3) << 16;
    switch (x >> 61) {
      case 0:
      case 1:
        return (x & 0x7ffffff0) + lowest_address;  // a pointer
      case 2:
        return ~(x >> 8 & 15) << 47 | (x & 0x7ffffff0);  // a LuaJIT value
      case 3:
        return x & 0x7f;  // a tag
      case 4:
        return (x & 0x0f0f0f0f0f0f0f0f) | (x >> 5 & 0x4040404040404040);  // eight of them
      default:
        return x;
    }
  }
  std::uint64_t seed_;
};

bool is_fit(const std::string& text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::vector<const Lua*> all_luas() {
  static const std::array<LuajitLua, 2> luajit = [] {
    LuajitLayout gc64 = layout_rows::luajit_gc64, gc32 = layout_rows::luajit_gc32;
    for (LuajitLayout* const layout : {&gc64, &gc32})
      layout->str_len = 20, layout->str_data = 24, layout->G_registry = 200, layout->G_cur_L = 368;
    return std::array<LuajitLua, 2>{LuajitLua(gc64), LuajitLua(gc32)};
  }();
  std::vector<const Lua*> all = {&luajit[0], &luajit[1]};
  all.insert(all.end(), puc_luas().begin(), puc_luas().end());
  return all;
}

// A few objects of 5.4, at addresses that the test knows.
class Image : public Memory {
 public:
  template <typename T>
  void put(Address address, T value) {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[address + i] = bytes[i];
  }
  bool read(Address address, std::span<std::byte> into) const override {
    for (std::size_t i = 0; i < into.size(); ++i) {
      const auto known = bytes_.find(address + i);
      if (known == bytes_.end()) return false;
      into[i] = known->second;
    }
    return true;
  }
  void zeros(Address address, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes_.emplace(address + i, std::byte{0});
  }

 private:
  std::map<Address, std::byte> bytes_;
};

const Layout& row(std::string_view name) {
  for (const Layout& row : layouts()) {
    if (row.name == name) return row;
  }
  FAIL("no row " << name);
  throw 0;
}

constexpr std::uint8_t table_tag = 5 | 64;

// A table whose array part has `size` slots at `array`; it has only one node, which is free.
void put_table(Image& image, const Layout& layout, Address at, Address array, std::uint32_t size) {
  image.put(at + 8, std::uint8_t{5});
  image.put(at + layout.table_sizearray, size);
  image.put(at + layout.table_array, array);
  image.put(at + layout.table_node, Address{0x90000});
  image.zeros(at, 128);
  image.zeros(0x90000, 64);
}

}  // namespace

TEST_CASE("values in memory that is full of anything are shown in bounded steps and bytes", "[unit]") {
  for (const Lua* const lua : all_luas()) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Anything memory(seed);
      Names names(memory);
      for (const ValueLimits& limits : {ValueLimits{}, verbose_limits}) {
        CountingRoom room;
        ValueText values(memory, {0x200000, 0x100000, lua}, names, limits, room);
        for (std::uint8_t type = 0; type <= static_cast<std::uint8_t>(Value::Type::other); ++type) {
          const std::uint64_t before = memory.bytes;
          const std::string text = values.text({static_cast<Value::Type>(type), 0x300000 + 4096 * seed});
          CHECK(is_fit(text));
          CHECK(text.size() <= limits.text_bytes + 8 * limits.string_bytes + 4096);
          CHECK(memory.bytes - before < 64 << 20);
        }
      }
    }
  }
}

TEST_CASE("variables in memory that is full of anything are bounded", "[unit]") {
  for (const Lua* const lua : all_luas()) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Anything memory(seed);
      Names names(memory);
      LuaWalk walk;
      for (Address i = 0; i < 3; ++i) {
        LuaCall call;
        call.ci = 0x400000 - 0x1000 * i, call.func = call.ci - 8, call.closure = 0x500000 + 64 * i;
        call.kind = i > 0 ? LuaCall::Kind::lua_vararg : LuaCall::Kind::c, call.proto = 0x600000, call.mark = 1,
        call.code = 0x700000, call.size_code = 100;
        walk.calls.push_back(call);
      }
      CountingRoom room;
      VariableReader variables(memory, {0x200000, 0x100000, lua}, walk, names, {}, room);
      for (std::size_t i = 0; i < walk.calls.size(); ++i) {
        const CallVariables has = variables.variables(i, 0x700008);
        CHECK(has.variables.size() <= 600);
        for (const Variable& variable : has.variables) CHECK(is_fit(variable.name + variable.value));
      }
    }
  }
}

TEST_CASE("tables are cut, one that has itself ends, and a size that cannot be is no reason to read on", "[unit]") {
  const Layout& layout = row("5.4.3-5.4.9");
  const Lua& lua = puc_lua(layout);
  Image image;
  const Address table = 0x10000, array = 0x20000;
  put_table(image, layout, table, array, 20);
  for (std::uint32_t i = 0; i < 20; ++i) {
    image.put(array + 16 * i, i == 1 ? table : Address{i});
    image.put(array + 16 * i + 8, i == 1 ? table_tag : std::uint8_t{3});
    image.zeros(array + 16 * i, 16);
  }
  Names names(image);
  CountingRoom room;
  ValueText values(image, {0x2000, 0x1000, &lua}, names, {}, room);
  CHECK(values.text({Value::Type::table, table}) == "{0, {…}, 2, 3, 4, 5, 6, 7, …(12 more)}");
  ValueText verbose(image, {0x2000, 0x1000, &lua}, names, verbose_limits, room);
  const std::string inner = ", 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}";
  CHECK(verbose.text({Value::Type::table, table}) == "{0, {0, {…}" + inner + inner);
  image.put(table + layout.table_sizearray, std::uint32_t{0x40000000});
  CHECK(values.text({Value::Type::table, table}) == "{0, {…}, 2, 3, 4, 5, 6, 7, …(unreadable)}");
  CHECK(values.text({Value::Type::table, 0x666000}) == "table ?");
  CHECK(values.text({Value::Type::string, 0x666000}) == "string ?");
  CHECK(values.text({Value::Type::function, 0x666000}) == "function ?");
}

// A program whose tables have a million slots.
class BigTables : public Image {
 public:
  static constexpr Address slots = 0x1000'0000;  // everything above are integers
  static constexpr std::size_t slot_size = 16;
  bool read(Address address, std::span<std::byte> into) const override {
    if (address < slots) return Image::read(address, into);
    slots_read += into.size() / slot_size;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::byte((address + i) % slot_size == 8 ? 3 : 0);
    return true;
  }
  mutable std::uint64_t slots_read = 0;
};

TEST_CASE("the slots that are visited to count entries are bounded for all tables of a look", "[unit]") {
  const Layout& layout = row("5.4.3-5.4.9");
  const Lua& lua = puc_lua(layout);
  BigTables image;
  constexpr std::uint32_t tables = 16, size = 1 << 20;
  const auto table = [](Address i) { return 0x10000 + 0x1000 * i; };
  for (std::uint32_t i = 0; i < tables; ++i)
    put_table(image, layout, table(i), BigTables::slots + Address{16} * size * i, i == 0 ? 100 : size);
  Names names(image);
  CountingRoom room;
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < tables; ++i)  // as of several threads and states
    texts.push_back(ValueText(image, {0x2000, 0x1000, &lua}, names, {}, room).text({Value::Type::table, table(i)}));
  const std::string first = "{0, 0, 0, 0, 0, 0, 0, 0, …";
  CHECK(texts[1] == first + "(79891 more counted, but not all)}");
  CHECK(texts[0] == first + "(92 more)}");
  CHECK(texts[2] == first + "(56 more counted, but not all)}");
  CHECK(texts[tables - 1] == texts[2]);
  CHECK(image.slots_read <= CountingRoom().slots + 100 + 64 * tables);
}

TEST_CASE("numbers are written as each Lua writes them", "[unit]") {
  const Image image;
  Names names(image);
  const auto text = [&](std::string_view name, double number) {
    CountingRoom room;
    return ValueText(image, {0x2000, 0x1000, &puc_lua(row(name))}, names, {}, room)
        .text({Value::Type::number, std::bit_cast<std::uint64_t>(number)});
  };
  CHECK(text("5.1.0-5.1.5", 3) == "3");
  CHECK(text("5.3.4-5.3.6", 3) == "3.0");
  CHECK(text("5.4.3-5.4.9", -0.0) == "-0.0");
  CHECK(text("5.4.3-5.4.9", 0.1) == "0.1");
  CHECK(text("5.4.3-5.4.9", 1e15) == "1e+15");
  CHECK(text("5.4.3-5.4.9", 1.0 / 3) == "0.33333333333333");
  CHECK(text("5.5.0-5.5.1", 0.1) == "0.1");
  CHECK(text("5.5.0-5.5.1", 1.0 / 3) == "0.33333333333333331");
  CHECK(text("5.5.0-5.5.1", 1e300 * 1e10) == "inf");
}

}  // namespace luaspy::value_text_test
