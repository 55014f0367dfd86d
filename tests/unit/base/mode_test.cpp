#include "base/mode.h"

#include <catch2/catch.hpp>

#include "profile/function_table.h"
#include "profile/stack_view.h"

namespace luaspy::mode_test {
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
    StackView shaper({.mode = mode}, found, kept);
    CHECK(kept.frames_of(*shaper.shaped(found.intern(stack), VmState::none, {})) == shown);
  }
}

TEST_CASE("costs of a profile that has all frames, as a view shows them", "[unit]") {
  Profile profile;
  const std::uint32_t thread = profile.index_of({1, "lua", 1, "lua"});
  const auto add = [&](const Stack& found) { profile.add(thread, {1, 1}, Sample{}, profile.stacks().intern(found)); };
  add({stack.begin(), stack.begin() + 5});  // in luaV_concat, called by f
  add({stack.begin(), stack.begin() + 1});  // in _start
  const auto cost_of = [&](Mode mode, const std::string& function) {
    const FunctionTable table = functions_of(profile, false, mode);
    const std::vector<Cost> all = costs(profile, table, By::samples);
    const auto found = std::ranges::find(table.functions, function, &Frame::name);
    return found == table.functions.end()
               ? std::pair<std::int64_t, std::int64_t>(-1, -1)
               : std::pair(all[static_cast<std::size_t>(found - table.functions.begin())].own,
                           all[static_cast<std::size_t>(found - table.functions.begin())].total);
  };
  using Both = std::pair<std::int64_t, std::int64_t>;
  CHECK(cost_of(Mode::merged, "f") == Both(1, 1));
  CHECK(cost_of(Mode::merged, "main") == Both(0, 1));
  CHECK(cost_of(Mode::merged, "luaV_concat") == Both(-1, -1));
  CHECK(cost_of(Mode::merged, "[start of the process]") == Both(1, 1));
  CHECK(cost_of(Mode::lua, "main") == Both(-1, -1));
  CHECK(cost_of(Mode::all, "luaV_concat") == Both(1, 1));
  CHECK(cost_of(Mode::all, "_start") == Both(1, 2));
}

TEST_CASE("patterns see what is shown", "[unit]") {
  StackTable found, kept;
  const StackId id = found.intern(stack);
  const auto has = [&](Mode mode, const char* only) {
    return StackView({.mode = mode, .only = only}, found, kept).shaped(id, VmState::none, {}).has_value();
  };
  CHECK(has(Mode::all, "luaV_concat"));
  CHECK(!has(Mode::merged, "luaV_concat"));
  CHECK(has(Mode::merged, "memchr"));
  CHECK(!has(Mode::lua, "memchr"));
}

TEST_CASE("names of chunks that are in parentheses get no second ones", "[unit]") {
  CHECK(describe({Frame::Kind::lua, "main chunk", "(command line)", 0, 3}, false) == "main chunk (command line)");
  CHECK(describe({Frame::Kind::lua, "f", "(load)", 2, 3}, false) == "f (load:2)");
  CHECK(describe({Frame::Kind::lua, "f", "(a) (b)", 2, 3}, false) == "f ((a) (b):2)");
  CHECK(describe({Frame::Kind::lua, "f", "()", 2, 3}, false) == "f (():2)");
}

}  // namespace luaspy::mode_test
