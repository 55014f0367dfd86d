#include "base/mode.h"

#include <catch2/catch.hpp>

#include "profile/shape.h"

namespace luaspy {
namespace {

Frame frame(Frame::Kind kind, const char* name, Frame::Part part = Frame::Part::program) {
  Frame frame = {kind, name, {}, 0, 0};
  frame.part = part;
  return frame;
}

const Stack stack = {frame(Frame::Kind::native, "_start", Frame::Part::start),
                     frame(Frame::Kind::native, "main"),
                     frame(Frame::Kind::c, "pmain", Frame::Part::start),
                     frame(Frame::Kind::lua, "f"),
                     frame(Frame::Kind::native, "luaV_concat", Frame::Part::vm),
                     frame(Frame::Kind::c, "gsub"),
                     frame(Frame::Kind::native, "memchr"),
                     frame(Frame::Kind::marker, "[write]")};

std::string names(const Stack& of) {
  std::string text;
  for (const Frame& one : of) text += one.name + ' ';
  return text;
}

}  // namespace

TEST_CASE("what each view shows", "[unit]") {
  const std::vector<std::pair<Mode, std::string>> views = {
      {Mode::merged, "main f gsub memchr [write] "},
      {Mode::lua, "f gsub [write] "},
      {Mode::all, "_start main pmain f luaV_concat gsub memchr [write] "}};
  for (const auto& [mode, text] : views) {
    INFO(name(mode));
    Stack shown = stack;
    keep_shown(mode, shown);
    CHECK(names(shown) == text);
    // The same, of a profile's stacks.
    StackTable found, kept;
    Shaper shaper({.mode = mode}, found, kept);
    std::vector<StackTable::StackId> ids;
    found.intern(stack, ids);
    Stack shaped;
    for (const StackTable::FrameId id : kept.stack(*shaper.shaped(ids.back(), VmState::none, {})))
      shaped.push_back(kept.frames()[id]);
    CHECK(shaped == shown);
  }
}

TEST_CASE("patterns see what is shown", "[unit]") {
  StackTable found, kept;
  std::vector<StackTable::StackId> ids;
  found.intern(stack, ids);
  const auto has = [&](Mode mode, const char* only) {
    return Shaper({.mode = mode, .only = only}, found, kept).shaped(ids.back(), VmState::none, {}).has_value();
  };
  CHECK(has(Mode::all, "luaV_concat"));
  CHECK(!has(Mode::merged, "luaV_concat"));
  CHECK(has(Mode::merged, "memchr"));
  CHECK(!has(Mode::lua, "memchr"));
}

}  // namespace luaspy
