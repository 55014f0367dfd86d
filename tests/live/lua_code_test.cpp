// Which native functions are Lua's own: the view that a recording has by default leaves them out, and
// shows those of the program.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "named_stacks.h"
#include "support/harness.h"

namespace luaspy::live::lua_code_test {
namespace {

bool runs_in(const FoldedStack& stack, const std::string& function) {
  return std::ranges::any_of(stack.frames, [&](const std::string& frame) { return frame.starts_with(function + " "); });
}

}  // namespace

TEST_CASE("functions of a program are shown, whatever their names and wherever they lie", "[lua_code][luas]") {
  const std::string start = GENERATE_COPY(from_range(prepared({"5.1", "5.4", "5.5", "2.1.newest-gc64"})));
  const std::string version = start.starts_with("5.") ? source_version(start) : start;
  const Folder folder;
  const std::string program = compile(folder, "page", version);
  Running running({program});
  running.read_until("READY");
  const NamedStacks recorded = record_names(running, folder, 400);
  const std::string place = " (" + std::filesystem::path(program).filename().string() + ")";
  INFO(version << "\n" << fmt::format("{}", fmt::join(recorded.frames(), "\n")));
  for (const char* name : {"app_lua_render", "app_draw", "smooth", "lua_page_finish"})
    CHECK(recorded.with(name + place) > 0);
  // Lua's own static functions have symbols here too.
  std::int64_t in_library = 0;
  for (const FoldedStack& stack : recorded.stacks) {
    if (!runs_in(stack, "table.sort") && !runs_in(stack, "string.gsub")) continue;
    in_library += stack.count;
    for (std::size_t i = 1; i < stack.frames.size(); ++i) CHECK(!stack.frames[i].ends_with(place));
  }
  CHECK(in_library > 0);
}

TEST_CASE("a stripped library of Lua's is Lua's as a whole", "[lua_code][all]") {
  const TargetSpec& shared = target("luajit-2.1.newest-shared");
  const Folder folder;
  REQUIRE(run({"strip", "-o", folder.path("libluajit.so"), shared.core}).status == 0);
  const std::string script = folder.write("library.lua",
                                          "local t = {}\n"
                                          "local text = ('some words in a text; '):rep(50)\n"
                                          "local function sort()\n"
                                          "  for i = 1, 2000 do t[i] = (i * 7919) % 10007 end table.sort(t) end\n"
                                          "local function format() for i = 1, 500 do\n"
                                          "  local x = string.format('%d %5.3f %s', i, i / 3, 'x') end end\n"
                                          "local function replace() return (text:gsub('%a+', '%0%0')) end\n" +
                                              std::string(say_ready) + "while true do sort() format() replace() end\n");
  Running running({"/usr/bin/env", "LD_LIBRARY_PATH=" + folder.path(), shared.command[0], script});
  running.read_until("READY");
  REQUIRE(read_file(fmt::format("/proc/{}/maps", running.pid())).find(folder.path("libluajit.so")) !=
          std::string::npos);
  const NamedStacks recorded = record_names(running, folder, 400);
  const std::set<std::string> frames = recorded.frames();
  INFO(fmt::format("{}", fmt::join(frames, "\n")));
  CHECK(recorded.frames_at("table.sort").size() == 1);
  CHECK(recorded.frames_at("libluajit.so") == std::set<std::string>{});
}

}  // namespace luaspy::live::lua_code_test
