#include "alloc/fold_internals.h"

#include <catch2/catch.hpp>

#include "base/mode.h"

namespace luaspy::fold_internals_test {
namespace {

Frame of_lua(const char* name) { return {Frame::Kind::lua, name, "a.lua", 1, 2}; }
Frame of_c(const char* name) { return {Frame::Kind::c, name, "libluajit.so", 0, 0}; }
Frame place(const std::string& module, Frame::Part part = Frame::Part::program) {
  Frame frame = {Frame::Kind::native, module + "+0x1000", module, 0, 0};
  frame.part = part;
  return frame;
}
Frame symbol(const char* name) { return {Frame::Kind::native, name, "libluajit.so", 0, 0}; }

std::string innermost(Stack stack, Mode mode = Mode::merged) {
  fold_internals(stack);
  keep_shown(mode, stack);
  return stack.back().name;
}

const std::string core = "libluajit.so";

}  // namespace

TEST_CASE("an allocation is that of the function that asked for it, not of a place in the core", "[unit]") {
  const Frame vm = place(core, Frame::Part::vm);
  CHECK(innermost({place("host"), of_lua("f"), place(core), place(core)}) == "f");
  CHECK(innermost({place("host"), of_lua("f"), vm, place(core), vm, place(core)}) == "f");
  CHECK(innermost({of_lua("f"), of_c("string.rep"), place(core)}) == "string.rep");
  CHECK(innermost({of_lua("f"), place(core)}, Mode::all) == core + "+0x1000");
  CHECK(innermost({of_lua("f")}) == "f");
}

TEST_CASE("what has a name, or was not asked for by a function of Lua, stays", "[unit]") {
  CHECK(innermost({of_lua("f"), symbol("lj_tab_resize")}) == "lj_tab_resize");
  CHECK(innermost({of_lua("f"), symbol("lj_tab_resize"), place(core)}) == core + "+0x1000");
  CHECK(innermost({of_lua("f"), place("libhost.so"), place(core)}) == core + "+0x1000");
  CHECK(innermost({place("host"), place(core)}) == core + "+0x1000");
  Stack nothing;
  fold_internals(nothing);
  CHECK(nothing.empty());
}

}  // namespace luaspy::fold_internals_test
