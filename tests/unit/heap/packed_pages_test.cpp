// A packed page is the same page again, whatever is in it; and so is a packed image.
#include "heap/packed_pages.h"

#include <catch2/catch.hpp>

#include <random>

#include "heap/memory_image.h"

using namespace luaspy;

namespace {

using PageBytes = std::array<std::byte, PackedPages::page_size>;

// Words of all kinds that the packing tells apart, in random order.
PageBytes heap_page(std::mt19937_64& random, Address address) {
  PageBytes page{};
  const std::uint64_t common[] = {0x55bb'2933'8370, 0x8000'0000'0000'0005, ~std::uint64_t{0}, 1ULL << 32};
  for (std::size_t i = 0; i < page.size(); i += 8) {
    const std::uint64_t any = random();
    const std::uint64_t word[] = {0,
                                  any & 0xff,
                                  any & 0xffff,
                                  any & 0xffff'ffff,
                                  address + any % 0x8000,
                                  address - any % 0x8000,
                                  address + any % 0x80'0000,
                                  address - any % 0x80'0000,
                                  common[any % 4],
                                  (common[any % 4] & ~0xffff'ffffULL) | (any >> 32),
                                  any};
    const std::uint64_t chosen = word[random() % std::size(word)];
    std::memcpy(page.data() + i, &chosen, sizeof chosen);
  }
  return page;
}

// Memory that has one range.
class OneRange : public Memory {
 public:
  OneRange(Address start, std::span<const std::byte> bytes) : start_(start), bytes_(bytes) {}
  bool read(Address address, std::span<std::byte> into) const override {
    if (address < start_ || address + into.size() > start_ + bytes_.size()) return false;
    std::memcpy(into.data(), bytes_.data() + (address - start_), into.size());
    return true;
  }

 private:
  Address start_;
  std::span<const std::byte> bytes_;
};

}  // namespace

TEST_CASE("a packed page is the same again", "[heap][packed]") {
  std::mt19937_64 random(3);
  PackedPages packed;
  std::vector<PageBytes> pages;
  const Address start = 0x7f12'3456'7000;
  for (std::size_t i = 0; i < 2000; ++i) {
    PageBytes page = heap_page(random, start + i * PackedPages::page_size);
    if (i % 5 == 0) {
      for (std::size_t at = 0; at < page.size(); at += 8) {
        const std::uint64_t any = random();
        std::memcpy(page.data() + at, &any, sizeof any);
      }
    }
    if (i % 7 == 0) page = {};
    packed.add(start + i * PackedPages::page_size, page);
    pages.push_back(page);
  }
  REQUIRE(packed.pages() == pages.size());
  CHECK(packed.bytes() < pages.size() * PackedPages::page_size);
  for (std::size_t i = pages.size(); i-- > 0;) {
    PageBytes page;
    page.fill(std::byte{0xee});
    packed.unpack(i, start + i * PackedPages::page_size, page);
    REQUIRE(page == pages[i]);
  }
}

TEST_CASE("a packed image is read as before", "[heap][packed]") {
  constexpr std::size_t size = (9 << 20) + 123;  // the last page is not whole
  constexpr Address start = 0x10'0000'0000;
  std::mt19937_64 random(4);
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at + PackedPages::page_size <= size; at += PackedPages::page_size)
    std::ranges::copy(heap_page(random, start + at), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  const OneRange live(start, bytes);
  MemoryImage image;
  // Two parts that touch, and one apart from them.
  const Address middle = start + (5 << 20), end = start + size;
  const std::vector<AddressRange> first = {{start, middle - 8192}, {middle, middle + 4096}},
                                  later = {{middle + 4096, end}};
  REQUIRE(image.add(first));
  REQUIRE(image.add(later));
  CHECK(image.copy(live, std::chrono::steady_clock::now()) < image.bytes());
  CHECK(image.copy(live) == image.bytes());
  image.pack();
  CHECK(image.packed_bytes() > 0);
  CHECK(image.packed_bytes() < size);
  std::vector<std::byte> some;
  for (int i = 0; i < 20'000; ++i) {
    const Address at = start + random() % size;
    some.resize(std::min<std::size_t>(random() % 10'000, end - at));
    const bool in_gap = at < middle && at + some.size() > middle - 8192 && !some.empty();
    REQUIRE(image.read(at, some) == !in_gap);
    if (!in_gap) REQUIRE(std::equal(some.begin(), some.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at - start)));
  }
  some.resize(2);
  CHECK_FALSE(image.read(end - 1, some));
}
