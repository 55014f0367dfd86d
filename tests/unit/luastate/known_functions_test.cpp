#include <catch2/catch.hpp>

#include "luastate/known_functions.h"

namespace luaspy::known_functions_test {
namespace {

LuaWalk walk_of(std::vector<LuaCall> calls) {
  LuaWalk walk;
  walk.calls = std::move(calls);
  return walk;
}

LuaCall lua(Address closure, Address proto, std::uint64_t mark) {
  LuaCall call;
  call.kind = LuaCall::Kind::lua;
  call.closure = closure, call.proto = proto, call.mark = mark;
  return call;
}

}  // namespace

TEST_CASE("a function is believed if it is what it was when it became known", "[known_functions]") {
  KnownFunctions known;
  known.add(walk_of({lua(0x1000, 0x2000, 5), lua(0x1040, 0x2000, 5)}));
  CHECK(known.has(0x1000));
  CHECK(known.has(0x1040));
  CHECK(!known.has(0x1080));
  CHECK(known.confirm(walk_of({lua(0x1000, 0x2000, 5), lua(0x1080, 0x3000, 7)})));
  CHECK(!known.confirm(walk_of({lua(0x1000, 0x2000, 6)})));  // another Proto at the same address
  CHECK(!known.has(0x1000));
}

TEST_CASE("a walk that could not read everything confirms nothing", "[known_functions]") {
  KnownFunctions known;
  LuaWalk walk = walk_of({lua(0x1000, 0x2000, 5)});
  walk.dropped = 1;
  CHECK(!known.confirm(walk));
}

TEST_CASE("a program that makes closures without end fills a table of bounded size", "[known_functions]") {
  KnownFunctions known;
  for (Address closure = 0x1000; closure < 0x1000 + 40 * 200'000; closure += 40) {
    known.add(walk_of({lua(closure, 0x2000, 5)}));
    if (closure % 64 == 0) CHECK(known.has(closure));
  }
}

}  // namespace luaspy::known_functions_test
