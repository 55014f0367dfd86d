// What blocks are for, as far as no program is needed to tell.

#include "allocations/block_use.h"

#include <catch2/catch.hpp>

namespace luaspy::block_use_test {
namespace {

const Block a_block = {0x1000, 48, {}, true};

}  // namespace

TEST_CASE("most blocks of a place tell what the others of it are for", "[unit]") {
  LearnedUses uses;
  const LearnedUses::Place place = {0x10, 0x20};
  CHECK(!uses.resolve(place, a_block, {}).type);
  const BlockUse function = {ObjectType::lua_function, false, a_block.address};
  for (int i = 0; i < 3; ++i) (void)uses.resolve(place, a_block, function);
  const BlockUse settled = uses.resolve(place, a_block, {});
  CHECK(settled.type == ObjectType::lua_function);
  CHECK(settled.object == a_block.address);
  // It was freed, and is something else by now.
  CHECK(uses.resolve(place, a_block, {ObjectType::upvalue, false, a_block.address}).type == ObjectType::lua_function);
  CHECK(!uses.resolve({0x10, 0x21}, a_block, {}).type);
}

TEST_CASE("a place with several uses tells nothing", "[unit]") {
  LearnedUses uses;
  const LearnedUses::Place place = {0x10, 0x20};
  for (int i = 0; i < 10; ++i) {
    CHECK(uses.resolve(place, a_block, {ObjectType::table, true, 0x2000}).object == 0x2000);
    (void)uses.resolve(place, a_block, {ObjectType::thread, true, 0x3000});
  }
  CHECK(!uses.resolve(place, a_block, {}).type);
}

TEST_CASE("the object of a part is not guessed", "[unit]") {
  LearnedUses uses;
  const LearnedUses::Place place = {0x10, 0x20};
  for (int i = 0; i < 4; ++i) (void)uses.resolve(place, a_block, {ObjectType::table, true, 0x2000});
  const BlockUse settled = uses.resolve(place, a_block, {});
  CHECK(settled.type == ObjectType::table);
  CHECK(settled.is_part);
  CHECK(settled.object == 0);
}

TEST_CASE("what Lua has told is believed", "[unit]") {
  LearnedUses uses;
  const LearnedUses::Place place = {0x10, 0x20};  // all objects of 5.4 are asked for at one place
  const Block string = {0x1000, 48, ObjectType::string, true}, table = {0x2000, 56, ObjectType::table, true};
  for (int i = 0; i < 10; ++i) (void)uses.resolve(place, string, {ObjectType::string, false, string.address});
  CHECK(uses.resolve(place, table, {ObjectType::table, false, table.address}).type == ObjectType::table);
  CHECK(is_same_type(ObjectType::c_function, ObjectType::lua_function));
  CHECK_FALSE(is_same_type(ObjectType::table, ObjectType::lua_function));
}

TEST_CASE("names of uses", "[unit]") {
  CHECK(name(BlockUse{}) == "[part or growth]");
  CHECK(name(BlockUse{ObjectType::table, false, 1}) == "[table]");
  CHECK(name(BlockUse{ObjectType::c_function, false, 1}) == "[function]");
  CHECK(name(BlockUse{ObjectType::table, true, 1}) == "[part of a table]");
  CHECK(name(BlockUse{ObjectType::thread, true, 1}) == "[stack]");
}

}  // namespace luaspy::block_use_test
