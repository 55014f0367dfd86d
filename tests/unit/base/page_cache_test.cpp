#include "base/page_cache.h"

#include <array>
#include <catch2/catch.hpp>

namespace luaspy::page_cache_test {
namespace {

// Each byte is the number of its page. Pages 0x20 to 0x2f cannot be read, and of page 0x30 only the
// first 100 bytes.
class Pages : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    for (std::size_t i = 0; i < into.size(); ++i) {
      const Address page = (address + i) / 4096;
      if ((page >= 0x20 && page < 0x30) || (page == 0x30 && (address + i) % 4096 >= 100)) return false;
      into[i] = static_cast<std::byte>(page);
    }
    return true;
  }
  mutable int reads = 0;
};

}  // namespace

TEST_CASE("pages are read once", "[page_cache]") {
  const Pages pages;
  const PageCache cache(pages);
  for (Address address = 0x10000; address < 0x12000; address += 8)
    CHECK(cache.get<std::uint8_t>(address) == static_cast<std::uint8_t>(address / 4096));
  CHECK(pages.reads == 2);
  std::array<std::byte, 3 * 4096> bytes;
  CHECK(cache.read(0x11f00, bytes));
  CHECK(pages.reads == 5);
  CHECK(bytes[0] == std::byte{0x11});
  CHECK(bytes[0xff] == std::byte{0x11});
  CHECK(bytes[0x100] == std::byte{0x12});
  CHECK(bytes.back() == std::byte{0x14});
}

TEST_CASE("of a page that cannot be read as a whole, what was asked for is read", "[page_cache]") {
  const Pages pages;
  const PageCache cache(pages);
  CHECK(cache.get<std::uint8_t>(0x30000 + 99) == 0x30);
  CHECK_FALSE(cache.get<std::uint8_t>(0x30000 + 100));
  CHECK_FALSE(cache.get<std::uint64_t>(0x30000 + 96));
  CHECK_FALSE(cache.get<std::uint8_t>(0x20000));
  std::array<std::byte, 16> bytes;
  CHECK_FALSE(cache.read(0x1fff8, bytes));
  CHECK(cache.read(0x1fff0, bytes));
}

TEST_CASE("memory is bounded, and what is beyond that is still read", "[page_cache]") {
  const Pages pages;
  const PageCache cache(pages);
  constexpr int most_pages = 1 << 13;
  for (int times = 0; times < 2; ++times) {
    for (Address page = 0x100; page < 0x100 + most_pages + 10; ++page)
      CHECK(cache.get<std::uint8_t>(page * 4096) == static_cast<std::uint8_t>(page));
  }
  CHECK(pages.reads == most_pages + 2 * 10);
}

}  // namespace luaspy::page_cache_test
