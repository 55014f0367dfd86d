#include "base/address_space.h"

#include <catch2/catch.hpp>

namespace luaspy::address_space_test {

TEST_CASE("maps are parsed, found by address, and lines of another form are passed over", "[unit]") {
  const AddressSpace space = AddressSpace::parse(
      "7f0000001000-7f0000002000 rw-p 00000000 00:00 0 \n"
      "55d0c0a00000-55d0c0a07000 r-xp 00002000 fe:01 1234                       /usr/bin/lua5.4\n"
      "nonsense\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n"
      "55d0c0b00000-55d0c0b01000 rw-s 00001000 00:05 77                         /dev/zero (deleted)\n"
      "2000-1000 r--p 00000000 00:00 0 \n");
  REQUIRE(space.mappings().size() == 4);
  const Mapping* const lua = space.find(0x55d0c0a06fff);
  REQUIRE(lua != nullptr);
  CHECK(lua->path == "/usr/bin/lua5.4");
  CHECK(lua->executable);
  CHECK_FALSE(lua->writable);
  CHECK(lua->offset == 0x2000);
  CHECK(lua->inode == 1234);
  CHECK(space.find(0x55d0c0a07000) == nullptr);
  CHECK(space.find(0) == nullptr);
  const Mapping* const deleted = space.find(0x55d0c0b00000);
  REQUIRE(deleted != nullptr);
  CHECK(deleted->deleted);
  CHECK(deleted->shared);
  CHECK(deleted->path == "/dev/zero");
}

TEST_CASE("mappings that overlap", "[unit]") {
  const AddressSpace space = AddressSpace::parse(
      "1000-9000 r--p 0 00:00 1 /a\n2000-3000 r--p 0 00:00 1 /a\n8000-ffffffffffffffff r--p 0 00:00 1 /a\n9000-a000 "
      "r--p 0 00:00 1 /a\n");
  REQUIRE(space.mappings().size() == 2);
  CHECK((space.mappings()[0].end == 0x9000 && space.mappings()[1].start == 0x9000));
}

}  // namespace luaspy::address_space_test
