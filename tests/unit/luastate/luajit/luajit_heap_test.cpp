// LuaJIT's heap where memory is none of a LuaJIT. tests/oracle/luajit_heap_oracle.cpp compares it
// with real ones.

#include "luastate/luajit/luajit_heap.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <vector>

#include "support/dice.h"
#include "support/luajit_layout.h"

using namespace luaspy;

namespace {

constexpr Address start = 0x10000000;
constexpr std::size_t window = 1 << 16;
constexpr Address G = start + 0x400;

// Some memory that counts what is read.
class Window : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    if (address < start || into.size() > bytes.size() || address - start > bytes.size() - into.size()) return false;
    std::ranges::copy(std::span(bytes).subspan(address - start, into.size()), into.begin());
    return true;
  }
  template <typename T>
  void put(Address address, T value) {
    std::memcpy(bytes.data() + (address - start), &value, sizeof value);
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(window);
  mutable std::int64_t reads = 0;
};

// As they are in the release of 2022.
LuajitHeapFields fields_of(bool gc64) {
  LuajitHeapFields fields;
  fields.G_strtab = gc64 ? 152 : 104;
  fields.G_tmpbuf = gc64 ? 200 : 144;
  fields.G_irbuf = 1600;
  fields.G_curtrace = 800;
  fields.metamethods = 22;
  fields.ctype_state = start + 0x3000;
  fields.cts_cbid = 192;
  fields.size = 6240;
  return fields;
}

struct Heap {
  Heap(const Memory& memory, bool gc64) : lua(made_luajit_layout(gc64)), heap(memory, lua, G, fields_of(gc64)) {}
  LuajitLua lua;
  LuajitHeap heap;
};

constexpr std::size_t cell = 64;

Address any_cell(Dice& dice) { return start + cell * Address{dice(window / cell)}; }

// Cells that begin like an object; in them references to cells, values, small numbers, anything.
void fill(Window& memory, Dice& dice, bool gc64) {
  for (Address at = start; at < start + window; at += 8) {
    switch (dice(6)) {
      case 0:
      case 1:
        memory.put(at, any_cell(dice));
        break;
      case 2:
        memory.put(at, any_cell(dice) | any_cell(dice) << 32);
        break;
      case 3:
        memory.put(at, std::uint64_t{dice(300)} | std::uint64_t{dice(300)} << 32);
        break;
      case 4:
        memory.put(at, std::uint64_t{dice(0x7fffffff)} << 33 | dice(0x7fffffff));
        break;
      default:
        memory.put(at, any_cell(dice) | ~std::uint64_t{4 + dice(9)} << (gc64 ? 47 : 32));
    }
    if (at % cell != 0) continue;
    if (gc64) memory.put(at, any_cell(dice));
    else memory.put(at, static_cast<std::uint32_t>(any_cell(dice)));
    memory.put(at + (gc64 ? 8 : 4), static_cast<std::uint8_t>(dice(256)));
    memory.put(at + (gc64 ? 9 : 5), static_cast<std::uint8_t>(4 + dice(9)));
  }
}

}  // namespace

TEST_CASE("no LuaJIT has no heap", "[unit]") {
  Dice dice;
  for (const bool gc64 : {true, false}) {
    for (int i = 0; i < 100; ++i) {
      Window memory;
      fill(memory, dice, gc64);
      CHECK(LuajitLua(made_luajit_layout(gc64)).heap_reader(memory, G) == nullptr);
    }
  }
}

TEST_CASE("a hostile heap of LuaJIT is visited within bounds", "[unit]") {
  constexpr std::uint64_t most = 20'000;
  Dice dice;
  std::int64_t objects = 0, references = 0;
  for (const bool gc64 : {true, false}) {
    for (int i = 0; i < 60; ++i) {
      Window memory;
      fill(memory, dice, gc64);
      if (i % 2 == 0) {
        memory.put(G + fields_of(gc64).G_strtab, any_cell(dice));
        memory.put(G + fields_of(gc64).G_strtab + 8, std::uint32_t{1023});
      }
      const Address root = G + (gc64 ? 40 : 32);
      if (gc64) memory.put(root, any_cell(dice));
      else memory.put(root, static_cast<std::uint32_t>(any_cell(dice)));
      const Heap made(memory, gc64);
      std::vector<HeapObject> some;
      std::uint64_t visited = 0;
      made.heap.visit_objects(most, [&](const HeapObject& object) {
        ++visited;
        if (some.size() < 400) some.push_back(object);
      });
      CHECK(visited <= most);
      // Every address as every type.
      for (std::size_t type = 0; type < object_types; ++type) {
        for (int n = 0; n < 20; ++n) some.push_back({any_cell(dice) + 8 * dice(2), static_cast<ObjectType>(type)});
      }
      for (const HeapObject& object : some) made.heap.visit_references(object, [&](const Reference&) { ++references; });
      made.heap.visit_roots([&](const Root&) { ++references; });
      (void)made.heap.other_bytes();
      objects += static_cast<std::int64_t>(visited);
      CHECK(memory.reads < 2'000'000);
    }
  }
  CHECK(objects > 1000);
  CHECK(references > 1000);
}

TEST_CASE("circles in LuaJIT's lists are noticed", "[unit]") {
  constexpr std::uint64_t most = 1'000'000;
  const bool gc64 = GENERATE(true, false);
  const Offset gct = gc64 ? 9 : 5, root = gc64 ? 40 : 32, mmudata = gc64 ? 80 : 52;
  const LuajitHeapFields fields = fields_of(gc64);
  Window memory;
  const Address strings = start + 0x4000, first = start + 0x8000, second = start + 0x8100, third = start + 0x8200;
  const auto refer = [&](Address at, Address to) {
    if (gc64) memory.put(at, to);
    else memory.put(at, static_cast<std::uint32_t>(to));
  };
  const auto link = [&](Address object, Address next, std::uint8_t type) {
    refer(object, next);
    memory.put(object + gct, type);
  };
  memory.put(G + fields.G_strtab, strings);
  memory.put(G + fields.G_strtab + 8, std::uint32_t{255});
  const auto visit = [&](std::uint64_t bound) {
    std::uint64_t visited = 0;
    const bool complete = Heap(memory, gc64).heap.visit_objects(bound, [&](const HeapObject&) { ++visited; });
    CHECK(visited < 20);
    return std::pair(complete, visited);
  };
  CHECK(visit(most) == std::pair(true, std::uint64_t{0}));

  SECTION("the list of all objects") {
    refer(G + root, first);
    link(first, second, luajit::gct_upvalue);
    link(second, 0, luajit::gct_upvalue);
    CHECK(visit(most) == std::pair(true, std::uint64_t{2}));
    CHECK_FALSE(visit(1).first);
    link(second, first, luajit::gct_upvalue);
    CHECK_FALSE(visit(most).first);
  }
  SECTION("open upvalues") {
    refer(G + root, first);
    link(first, 0, luajit::gct_thread);
    refer(first + made_luajit_layout(gc64).L_openupval, second);
    link(second, third, luajit::gct_upvalue);
    CHECK_FALSE(visit(most).first);  // the third is nothing
    link(third, 0, luajit::gct_upvalue);
    CHECK(visit(most) == std::pair(true, std::uint64_t{3}));
    link(third, third, luajit::gct_upvalue);
    CHECK_FALSE(visit(most).first);
  }
  SECTION("the ring of finalizers") {
    refer(G + mmudata, first);
    link(first, second, luajit::gct_userdata);
    link(second, first, luajit::gct_cdata);
    CHECK(visit(most) == std::pair(true, std::uint64_t{2}));
    link(second, third, luajit::gct_userdata);
    link(third, second, luajit::gct_userdata);  // not through its last one
    CHECK_FALSE(visit(most).first);
  }
  SECTION("a chain of strings") {
    refer(strings, first | 1);  // with secondary hashes
    link(first, second, luajit::gct_string);
    link(second, 0, luajit::gct_string);
    memory.put(G + fields.G_strtab + 12, std::uint32_t{2});
    CHECK(visit(most) == std::pair(true, std::uint64_t{2}));
    memory.put(G + fields.G_strtab + 12, std::uint32_t{20});
    CHECK_FALSE(visit(most).first);  // the table is being resized
    memory.put(G + fields.G_strtab + 12, std::uint32_t{2});
    link(second, first, luajit::gct_string);
    CHECK_FALSE(visit(most).first);
    link(second, third, luajit::gct_table);
    CHECK_FALSE(visit(most).first);
  }
}
