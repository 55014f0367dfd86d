// Functions that are copied in the stop: which, how many, and in which targets.

#include "luastate/function_copies.h"

#include <catch2/catch.hpp>

#include "image54.h"
#include "luastate/names.h"

namespace luaspy::function_copies_test {
namespace {

// Memory that counts the reads that it gets.
class Counting : public Memory {
 public:
  explicit Counting(const Memory& memory) : memory_(memory) {}
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    return memory_.read(address, into);
  }
  mutable std::size_t reads = 0;

 private:
  const Memory& memory_;
};

LuaCall call_of(const Lua& lua, const Memory& memory, Address proto) {
  LuaCall call;
  call.kind = LuaCall::Kind::lua;
  call.proto = proto;
  call.mark = lua.mark(memory, proto);
  return call;
}

}  // namespace

TEST_CASE("functions are copied for the first looks, and as long as they are thrown away", "[function_copies]") {
  CopyPolicy policy;
  int looks = 0;
  for (; policy.copies() && looks < 10'000; ++looks) policy.record(false);
  CHECK(looks == 64);
  policy.record(true);
  for (looks = 0; policy.copies() && looks < 10'000; ++looks) policy.record(looks == 500);
  CHECK(looks == 501 + 1024);
  policy.copy_always();
  CHECK(policy.copies());
}

TEST_CASE("a function that lasts is asked for again after some looks", "[function_copies]") {
  LastingFunctions lasting;
  CHECK_FALSE(lasting.has(0x1000, 5));
  lasting.add(0x1000, 5);
  CHECK(lasting.has(0x1000, 5));
  CHECK_FALSE(lasting.has(0x1000, 6));  // another one at this address
  CHECK_FALSE(lasting.has(0x1040, 5));
  int looks = 0;
  for (; lasting.has(0x1000, 5) && looks < 10'000; ++looks) lasting.looked();
  CHECK(looks == 128);
}

TEST_CASE("a copy is made of each function once, but not of those that last", "[function_copies]") {
  const PucLua& lua = Image54::lua();
  Image54 image;
  const Address first = image.proto(2, image.string("@first.lua").word),
                second = image.proto(3, image.string("@second.lua").word);
  LastingFunctions lasting;
  lasting.add(second, lua.mark(image, second));
  std::vector<FunctionCopy> copies;
  FunctionCopier copier(image, lasting, copies);
  const std::array protos = {first, second, first, Address{0x10}};
  copier.copy(lua, protos);
  copier.copy(lua, protos);
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].prototype.source == "@first.lua");
  CHECK(copies[0].mark == lua.mark(image, first));
}

TEST_CASE("the copies of one stop are few, and take few reads", "[function_copies]") {
  const PucLua& lua = Image54::lua();
  Image54 image;
  std::vector<Address> protos;
  for (int i = 0; i < 64; ++i) protos.push_back(image.proto(2, image.string("@f.lua").word));
  const Counting memory(image);
  const LastingFunctions lasting;
  std::vector<FunctionCopy> copies;
  FunctionCopier copier(memory, lasting, copies);
  copier.copy(lua, protos);
  CHECK(copies.size() == 32);
  const std::size_t reads = memory.reads;
  copier.copy(lua, protos);
  CHECK(memory.reads == reads);
}

TEST_CASE("a function that was freed has the name of its copy, also if another one has the same mark",
          "[function_copies]") {
  const PucLua& lua = Image54::lua();
  Image54 image;
  const Image54::Tagged text = image.string("@a.lua");
  const Address proto = image.proto(2, text.word);
  const LastingFunctions lasting;
  const auto copy = [&] {
    std::vector<FunctionCopy> copies;
    FunctionCopier(image, lasting, copies).copy(lua, std::array{proto});
    REQUIRE(copies.size() == 1);
    return copies.front();
  };
  const FunctionCopy first = copy();
  const LuaCall call = call_of(lua, image, proto);
  image.put_text(text.word, "@b.lua");  // the same mark
  const FunctionCopy second = copy();
  CHECK(first.mark == second.mark);

  Names names(image);
  CHECK_FALSE(names.keep(first).replaced);
  REQUIRE(names.prototype(lua, call) != nullptr);
  CHECK(names.prototype(lua, call)->source == "@a.lua");
  CHECK(names.keep(first).alike == 2);
  CHECK(names.keep(second).replaced);
  CHECK(names.prototype(lua, call)->source == "@b.lua");
  CHECK(names.drain_gone() == 0);
  LuaCall gone = call;
  ++gone.mark;
  CHECK(names.prototype(lua, gone) == nullptr);
  CHECK(names.drain_gone() == 1);
  CHECK(names.drain_gone() == 0);
}

}  // namespace luaspy::function_copies_test
