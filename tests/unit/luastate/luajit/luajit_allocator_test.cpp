#include "luastate/luajit/luajit_allocator.h"

#include <catch2/catch.hpp>

#include "luastate/luajit/layouts.h"
#include "unit/heap/heap_image.h"

namespace luaspy {
namespace {

LuajitLayout layout_with_allocator() {
  LuajitLayout layout = layout_rows::luajit_gc64;
  layout.G_gc = 16;
  return layout;
}

}  // namespace

TEST_CASE("LuaJIT's allocator: bins, dv and top are free") {
  using namespace luajit_image;
  HeapImage image;
  add_luajit_heap(image);
  const LuajitLayout layout = layout_with_allocator();
  const auto own = luajit_allocator(image, layout, image.resident.address_space(), G);
  REQUIRE(own);
  CHECK(own->whole);
  CHECK(own->segments == std::vector<AddressRange>{{segment, segment + segment_size}});
  CHECK(own->free ==
        std::vector<AddressRange>{{free, free + free_size}, {dv, after}, {top, segment + segment_size - 64}});
  const SharedLuaMemory shared = luajit_shared_memory(image, image.resident, own->segments);
  CHECK(shared.mapped_chunks == std::vector<AddressRange>{{alone, alone + alone_size}});
  CHECK(shared.machine_code == std::vector<AddressRange>{{code, code + 2 * code_size}});
}

TEST_CASE("LuaJIT's allocator that is just changing is found, and what is free in it is not known") {
  using namespace luajit_image;
  HeapImage image;
  add_luajit_heap(image);
  image.put(after + 8, 0x50 | 2);  // ends in the middle of a chunk
  const auto own = luajit_allocator(image, layout_with_allocator(), image.resident.address_space(), G);
  REQUIRE(own);
  CHECK_FALSE(own->whole);
  CHECK(own->free.empty());
  CHECK(own->bytes_in_use() == segment_size);
}

TEST_CASE("an allocator that is not LuaJIT's is none") {
  using namespace luajit_image;
  HeapImage image;
  add_luajit_heap(image);
  image.put(G + 8, G + 64);
  CHECK_FALSE(luajit_allocator(image, layout_with_allocator(), image.resident.address_space(), G));
  CHECK_FALSE(luajit_allocator(image, layout_rows::luajit_gc64, image.resident.address_space(), G));
}

TEST_CASE("whatever LuaJIT's allocator says, what is read of it is bounded") {
  using namespace luajit_image;
  Dice dice;
  int whole = 0;
  for (int i = 0; i < 3000; ++i) {
    HeapImage image;
    add_luajit_heap(image);
    image.damage(dice);
    const auto own = luajit_allocator(image, layout_with_allocator(), image.resident.address_space(), G);
    const SharedLuaMemory shared = luajit_shared_memory(image, image.resident, {});
    CHECK(image.reads < 300'000);
    for (const std::vector<AddressRange>& list : {shared.mapped_chunks, shared.machine_code})
      CHECK(common_bytes(list, image.resident.pages) == total_bytes(list));
    if (!own) continue;
    whole += own->whole;
    CHECK(common_bytes(own->segments, image.resident.pages) == total_bytes(own->segments));
    CHECK(common_bytes(own->free, own->segments) == total_bytes(own->free));
  }
  CHECK(whole > 500);
}

}  // namespace luaspy
