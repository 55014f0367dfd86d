// What tells a Lua from one that is made at the address of a closed one (Lua::identity).

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "luastate/puc/puc_lua.h"

namespace luaspy::identity_test {
namespace {

constexpr Address G = 0x10000;

// The beginning of a global_State.
class Globals : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    if (address < G || address - G > bytes_.size() || into.size() > bytes_.size() - (address - G)) return false;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(address - G), into.size(), into.begin());
    return true;
  }
  void set(std::size_t at, std::uint32_t value) { std::memcpy(bytes_.data() + at, &value, sizeof value); }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(256);
};

}  // namespace

// Offsets of lstate.h: frealloc, ud, the registry, the seed; and of counters, which change.
TEST_CASE("a Lua is another one if its userdata, its seed or its registry is", "[unit]") {
  struct Fields {
    Bytecode bytecode;
    std::vector<std::size_t> lasting, changing;
  };
  const std::vector<Fields> all = {{Bytecode::lua51, {16, 24, 160}, {0, 32, 40, 120, 128, 184}},
                                   {Bytecode::lua53, {0, 8, 64, 80}, {16, 24, 40, 48, 84, 88}},
                                   {Bytecode::lua54, {0, 8, 64, 96}, {16, 24, 32, 48, 56, 100}},
                                   {Bytecode::lua55, {0, 8, 64, 96}, {16, 24, 32, 48, 56, 106}}};
  for (const Fields& fields : all) {
    for (const PucLua* const lua : puc_luas()) {
      if (lua->layout().bytecode != fields.bytecode || lua->slot_size() != 16) continue;
      CAPTURE(lua->name());
      Globals globals;
      globals.set(fields.lasting.front(), 0x1234);
      const std::uint64_t before = lua->identity(globals, G);
      CHECK(before != 0);
      for (const std::size_t at : fields.changing) globals.set(at, 7);
      CHECK(lua->identity(globals, G) == before);
      for (const std::size_t at : fields.lasting) {
        Globals other;
        other.set(fields.lasting.front(), 0x1234);
        other.set(at, 0x5678);
        CHECK(lua->identity(other, G) != before);
      }
      CHECK(lua->identity(globals, G + 4096) == 0);
    }
  }
}

}  // namespace luaspy::identity_test
