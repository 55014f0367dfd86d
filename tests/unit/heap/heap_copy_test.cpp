#include <catch2/catch.hpp>

#include "heap/heap_copy.h"

namespace luaspy::heap_copy_test {
namespace {

// 1 MiB from `base` on, each word its own address plus `age`.
class Changing : public Memory {
 public:
  static constexpr Address base = 0x10'0000, size = 1 << 20;
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    if (address < base || address + into.size() > base + size) return false;
    for (std::size_t i = 0; i < into.size(); ++i) {
      const Address word = (address + i) / 8 * 8 + age;
      into[i] = static_cast<std::byte>(word >> (address + i) % 8 * 8);
    }
    return true;
  }
  mutable int reads = 0;
  Address age = 0;
};

AddressSpace one_mapping() {
  return AddressSpace(
      {{.start = Changing::base, .end = Changing::base + Changing::size, .readable = true, .writable = true}});
}

}  // namespace

TEST_CASE("a copy has what was used, as it was in the stop") {
  Changing live;
  HeapCopy copy(live, 1 << 20);
  copy.set_space(one_mapping());
  copy.start(true);
  const Address first = Changing::base + 8, far = Changing::base + 5 * HeapCopy::piece_size + 4096;
  CHECK(copy.get<Address>(first) == first);
  CHECK(copy.get<Address>(first + 512) == first + 512);
  CHECK(live.reads == 1);  // the piece was known already
  CHECK(copy.get<Address>(far) == far);
  CHECK(copy.used_bytes() == 2 * HeapCopy::page_size);
  live.age = 1 << 24;
  CHECK(copy.get<Address>(first) == first);
  copy.refresh(first);
  CHECK(copy.get<Address>(first) == first + live.age);
  copy.copy();
  copy.seal();
  live.age = 1 << 25;
  CHECK(copy.copied_bytes() == 2 * HeapCopy::page_size);
  CHECK(copy.get<Address>(far) == far + (1 << 24));
  CHECK(copy.missing() == 0);
  CHECK_FALSE(copy.get<Address>(far + HeapCopy::page_size));
  CHECK_FALSE(copy.get<Address>(Changing::base + 9 * HeapCopy::piece_size));
  CHECK(copy.missing() == 2);
  // What was missing is learned.
  copy.start(false);
  copy.copy();
  copy.seal();
  CHECK(copy.get<Address>(far + HeapCopy::page_size) == far + HeapCopy::page_size + (1 << 25));
}

TEST_CASE("until the stop ends single pages are added") {
  Changing live;
  HeapCopy copy(live, 1 << 20);
  copy.set_space(one_mapping());
  copy.start(true);
  CHECK(copy.get<Address>(Changing::base));
  copy.copy();
  CHECK(copy.get<Address>(Changing::base + HeapCopy::page_size));
  CHECK(copy.copied_bytes() == 2 * HeapCopy::page_size);
  copy.seal();
  CHECK_FALSE(copy.get<Address>(Changing::base + 2 * HeapCopy::page_size));
}

TEST_CASE("a copy ends with the time that the stop has") {
  Changing live;
  HeapCopy copy(live, 1 << 20);
  copy.set_space(one_mapping());
  copy.start(true);
  CHECK(copy.get<Address>(Changing::base));
  copy.end_at(std::chrono::steady_clock::now());
  CHECK(copy.get<Address>(Changing::base + HeapCopy::page_size));  // while it learns, nothing stands still
  CHECK_FALSE(copy.is_late());
  copy.copy();
  CHECK(copy.is_late());
  CHECK(copy.copied_bytes() == 0);
  CHECK_FALSE(copy.get<Address>(Changing::base));
  // Reads ask for the time now and then.
  copy.end_at(std::chrono::steady_clock::time_point::max());
  copy.start(false);
  copy.copy();
  copy.end_at(std::chrono::steady_clock::now());
  int reads = 0;
  while (copy.get<Address>(Changing::base) && reads < 10'000) ++reads;
  CHECK(reads < 1000);
  CHECK(copy.is_late());
  copy.start(false);
  CHECK(copy.get<Address>(Changing::base));
}

TEST_CASE("a copy has bounds") {
  Changing live;
  HeapCopy copy(live, 2 * HeapCopy::piece_size);
  copy.set_space(one_mapping());
  copy.start(true);
  CHECK(copy.get<Address>(Changing::base));
  CHECK(copy.get<Address>(Changing::base + HeapCopy::piece_size));
  CHECK_FALSE(copy.get<Address>(Changing::base + 2 * HeapCopy::piece_size));
  CHECK(copy.missing() == 1);
  // Nothing is read outside of mapped memory.
  const int before = live.reads;
  HeapCopy other(live, 1 << 20);
  other.set_space(one_mapping());
  CHECK_FALSE(other.get<Address>(Changing::base + Changing::size));
  CHECK_FALSE(other.get<Address>(Changing::base + Changing::size - 4));
  CHECK(live.reads == before + 1);
  // Across the end of a piece.
  HeapCopy across(live, 1 << 20);
  CHECK(across.get<Address>(Changing::base + HeapCopy::piece_size - 4) ==
        (((Changing::base + HeapCopy::piece_size - 8) >> 32) | (Changing::base + HeapCopy::piece_size) << 32));
}

}  // namespace luaspy::heap_copy_test
