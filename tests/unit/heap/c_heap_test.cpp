#include "heap/c_heap.h"

#include <catch2/catch.hpp>

#include "unit/heap/heap_image.h"

namespace luaspy::c_heap_test {

TEST_CASE("a heap of malloc's is walked, with fastbins, caches and chunks mapped alone") {
  using namespace glibc_image;
  HeapImage image;
  add_glibc_heap(image);
  const CHeap heap_read = read_c_heap(image, image.resident, {});
  CHECK(heap_read.found);
  CHECK(heap_read.arenas == 1);
  CHECK(heap_read.doubts.empty());
  CHECK(heap_read.areas == std::vector<AddressRange>{{heap, heap + heap_size}, {alone, alone + alone_size}});
  CHECK(heap_read.free == std::vector<AddressRange>{{fast, used}, {in_bin, guard}, {top, heap + heap_size}});
  CHECK(heap_read.fastbin_bytes == 0x20);
  CHECK(heap_read.cached_bytes == 0x30);
  CHECK(heap_read.mapped_chunks == 1);
  CHECK(heap_read.mapped_bytes == alone_size);
  CHECK(heap_read.bytes_in_use() == 0x290 + 0x1000 + 0x20 + alone_size);
}

// malloc rounds to the pages of the kernel that the process runs on (malloc.c, sysmalloc_mmap).
TEST_CASE("chunks mapped alone are whole pages, of whatever size") {
  using namespace glibc_image;
  for (const std::uint64_t page_bytes : {0x1000, 0x4000, 0x10000}) {
    INFO(page_bytes);
    HeapImage image;
    image.resident.page_bytes = page_bytes;
    add_glibc_heap(image, 2 * page_bytes);
    const CHeap heap_read = read_c_heap(image, image.resident, {});
    CHECK(heap_read.mapped_chunks == 1);
    CHECK(heap_read.mapped_bytes == 2 * page_bytes);
    CHECK(heap_read.doubts.empty());
  }
  // Nor is a chunk what is no whole number of them.
  HeapImage image;
  image.resident.page_bytes = 0x4000;
  add_glibc_heap(image, 0x5000);
  CHECK(read_c_heap(image, image.resident, {}).mapped_chunks == 0);
}

TEST_CASE("a heap that cannot be walked is not known, and that is said") {
  using namespace glibc_image;
  HeapImage image;
  add_glibc_heap(image);
  image.put(used + 8, 0x7fffffff1);  // a size beyond the heap
  const CHeap heap_read = read_c_heap(image, image.resident, {});
  CHECK(heap_read.found);
  CHECK(heap_read.unknown == std::vector<AddressRange>{{heap, heap + heap_size}});
  CHECK(heap_read.free_bytes() == 0);
  CHECK(heap_read.bytes_in_use() == alone_size);
  REQUIRE(heap_read.doubts.size() == 1);
  CHECK(heap_read.doubts[0] ==
        "The C heap from 0x555500000000 to 0x555500021000 could not be walked: a chunk has an impossible size.");
}

TEST_CASE("a process without glibc, or with one whose malloc was never called, has no C heap") {
  HeapImage image;
  CHECK_FALSE(read_c_heap(image, image.resident, {}).found);
  image.map(glibc_image::data, glibc_image::data_size, "/lib/libc.so.6", 7);
  CHECK_FALSE(read_c_heap(image, image.resident, {}).found);
  add_luajit_heap(image);
  CHECK_FALSE(read_c_heap(image, image.resident, {}).found);
}

TEST_CASE("whatever a heap says, what is read of it is bounded, and its parts fit together") {
  Dice dice;
  int walked = 0;
  for (int i = 0; i < 3000; ++i) {
    HeapImage image;
    add_glibc_heap(image);
    image.damage(dice);
    const CHeap heap_read = read_c_heap(image, image.resident, {});
    CHECK(image.reads < 100'000);
    CHECK(heap_read.doubts.size() <= 20);
    for (const auto* const list : {&heap_read.areas, &heap_read.free, &heap_read.unknown}) {
      std::vector<AddressRange> joined = *list;
      CHECK(sort_and_join(joined) == 0);
      CHECK(joined == *list);
      CHECK(common_bytes(*list, heap_read.areas) == total_bytes(*list));
      CHECK(common_bytes(*list, image.resident.pages) == total_bytes(*list));
    }
    CHECK(common_bytes(heap_read.free, heap_read.unknown) == 0);
    CHECK(heap_read.free_bytes() + heap_read.bytes_in_use() + total_bytes(heap_read.unknown) ==
          total_bytes(heap_read.areas));
    walked += heap_read.found && heap_read.unknown.empty();
  }
  CHECK(walked > 500);
  CHECK(walked < 2900);
}

}  // namespace luaspy::c_heap_test
