#include "luastate/luajit/ffi_callbacks.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "luastate/luajit/layouts.h"

namespace luaspy {
namespace {

constexpr Address ffi_base = 0x7f00'0000'0000, types_at = 4096;
constexpr std::uint32_t ffi_buckets = 128;

// A CTState at `ffi_base`, and its types.
class FfiState : public Memory {
 public:
  // All types have names; their addresses are chance. `cbid`: of a release.
  FfiState(const LuajitLayout& layout, std::size_t cbid, std::mt19937& random) : bytes_(types_at + 4096 * 24) {
    const std::size_t type_size = layout.gc64 ? 24 : 16, name_at = layout.gc64 ? 16 : 12;
    // Registers that a call has left: numbers, and addresses, of pages, too.
    for (std::size_t at = 48; at < cbid - 8; at += 8) {
      const Address values[] = {random() % 4096, ffi_base + random() % 65536 * 8, ffi_base + random() % 256 * 4096, 0};
      put(at, values[random() % 4]);
    }
    put(cbid - 8, ffi_base + 0x10000), put(cbid, ffi_base + 0x20000);
    put(cbid + 8, std::uint32_t{512}), put(cbid + 12, std::uint32_t{1});
    for (top = 1; top < 1500; ++top) {
      const auto name = static_cast<std::uint32_t>(random() & ~7U) | 8;
      put(types_at + top * type_size, static_cast<std::uint32_t>(random()));
      put(types_at + top * type_size + name_at, name);
      put(cbid + 24 + 2 * bucket(name, name - 0x04c11db7), static_cast<std::uint16_t>(top));
    }
  }
  bool read(Address address, std::span<std::byte> into) const override {
    if (address < ffi_base || address - ffi_base > bytes_.size() || bytes_.size() - (address - ffi_base) < into.size())
      return false;
    std::memcpy(into.data(), bytes_.data() + (address - ffi_base), into.size());
    return true;
  }
  std::uint32_t top = 0;

 private:
  template <typename T>
  void put(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  // lj_tab.h, hashrot
  static std::uint32_t bucket(std::uint32_t lo, std::uint32_t hi) {
    lo ^= hi;
    hi = std::rotl(hi, 14);
    lo -= hi;
    hi = std::rotl(hi, 5) ^ lo;
    return (hi - std::rotl(lo, 13)) % ffi_buckets;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace

// With names in all buckets, the buckets of what the types are say nothing.
TEST_CASE("callbacks are found in the state of the FFI, whatever its types are called") {
  std::mt19937 random(20261125);
  for (int i = 0; i < 100; ++i) {
    for (const std::size_t cbid : {std::size_t{192}, std::size_t{232}, std::size_t{240}}) {
      for (const LuajitLayout& layout : {layout_rows::luajit_gc64, layout_rows::luajit_gc32}) {
        const FfiState state(layout, cbid, random);
        REQUIRE(find_callbacks(state, layout, ffi_base, ffi_base + types_at, state.top) == cbid);
        REQUIRE(find_callbacks(state, layout, ffi_base, ffi_base + types_at, 1) == no_field);
      }
    }
  }
}

}  // namespace luaspy
