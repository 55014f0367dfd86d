// The identity and names of functions: functions that begin on the same line, functions that only C
// calls, and symbols of a program with many symbols.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "named_stacks.h"
#include "support/harness.h"

namespace luaspy::live::live_identity_test {

TEST_CASE("functions that begin on the same line share the time as they do", "[identity][identity_line][luas]") {
  const std::string loop = "local x = 0 for i = 1, 100000 do x = x + i % 7 end return x end ";
  const std::string other_loop = "local x = 0 for i = 1, 100000 do x = x + i % 9 end return x end ";
  for (const std::string& second : {loop, other_loop}) {
    const Folder folder;
    const std::string script = folder.write("one.lua", "function alpha() " + loop + "function beta() " + second +
                                                           say_ready + "while true do alpha() beta() end\n");
    for (const Words& interpreter : interpreters()) {
      INFO(Catch::StringMaker<Words>::convert(interpreter) << (second == loop ? ", the same code" : ", other code"));
      Running running(interpreter + Words{script});
      running.read_until("READY");
      const NamedStacks recorded = record_names(running, folder);
      const std::int64_t alpha = recorded.with("alpha (" + script + ":1)"),
                         beta = recorded.with("beta (" + script + ":1)");
      INFO("alpha " << alpha << ", beta " << beta << ", "
                    << fmt::format("{}", fmt::join(recorded.frames_at("one.lua:1"), " ")));
      REQUIRE(alpha + beta >= 40);
      CHECK(alpha > (alpha + beta) / 4);
      CHECK(beta > (alpha + beta) / 4);
      CHECK(recorded.frames_at("one.lua:1").size() == 2);
    }
  }
}

TEST_CASE("functions of one line with the same name are numbered", "[identity][identity_line][luas]") {
  const Folder folder;
  const std::string script = folder.write(
      "two.lua", std::string("local t = {function() local x = 0 for i = 1, 100000 do x = x + i % 7 end return x end, "
                             "function() local x = 0 for i = 1, 100000 do x = x + i % 9 end return x end} ") +
                     say_ready + "while true do for k = 1, 2 do local work = t[k] work() end end\n");
  for (const Words& interpreter : interpreters()) {
    INFO(Catch::StringMaker<Words>::convert(interpreter));
    Running running(interpreter + Words{script});
    running.read_until("READY");
    const std::set<std::string> frames = record_names(running, folder).frames_at("two.lua:1");
    CHECK(frames == std::set<std::string>{"work (" + script + ":1)", "work (" + script + ":1#2)"});
  }
}

TEST_CASE("a source that is loaded twice has one function", "[identity][identity_line][luas]") {
  const Folder folder;
  const std::string module = folder.write(
      "module.lua", "return {function() local x = 0 for i = 1, 100000 do x = x + i % 7 end return x end}\n");
  const std::string script = folder.write("twice.lua", "local a, b = dofile('" + module + "'), dofile('" + module +
                                                           "') local f, g = a[1], b[1] collectgarbage() " + say_ready +
                                                           "while true do f() g() end\n");
  for (const Words& interpreter : interpreters()) {
    INFO(Catch::StringMaker<Words>::convert(interpreter));
    Running running(interpreter + Words{script});
    running.read_until("READY");
    CHECK(record_names(running, folder).frames_at("module.lua:1").size() == 1);
  }
}

TEST_CASE("what only C calls has the name that package.loaded has for it", "[identity][identity_loaded][luas]") {
  const Folder folder;
  const std::string loop = "() local x = 0 for i = 1, 20000 do x = x + i % 7 end return x end\n";
  const std::string script = folder.write(
      "served.lua", "function handler" + loop +
                        "local served = {} package.loaded.served = served\nfunction served.serve" + loop +
                        "local made = function" + loop +
                        "local function make(n) return function() local x = 0 for i = 1, 20000 do x = x + i % n end "
                        "return x end end\nfirst, second = make(3), make(5)\n"
                        "called = {handler, served.serve, made, first, second}\n");
  for (const std::string& start :
       prepared({"5.1.", "5.2.", "5.3.", "5.4.", "5.5.", "2.1.newest-gc64", "2.1.20170501-gc32"})) {
    const std::string version = source_version(start);
    INFO(version);
    Running running({compile(folder, "calls", version), script});
    running.read_until("READY");
    const NamedStacks recorded = record_names(running, folder);
    INFO(fmt::format("{}", fmt::join(recorded.frames_at("served.lua"), " ")));
    CHECK(recorded.with("handler (" + script + ":1)") > 0);
    CHECK(recorded.with("served.serve (" + script + ":3)") > 0);
    CHECK(recorded.with("made (" + script + ":4)") > 0);
    // Two functions of one source, which gives them no name.
    CHECK(recorded.frames_at("served.lua:5") ==
          std::set<std::string>{"first (" + script + ":5)", "second (" + script + ":5)"});
  }
}

TEST_CASE("a program of many symbols is named as ever", "[identity][identity_symbols][luas]") {
  const Folder folder;
  Running running({compile(folder, "symbols", source_version("5.4."))});
  running.read_until("READY");
  for (const Words& options : {Words{}, Words{"--locals"}, Words{"--coroutines"}}) {
    bool seen = false;
    running.await("a look finds it at work", [&] {
      const nlohmann::json look = dump(running.pid(), options);
      const nlohmann::json& frames = look.at("threads").at(0).at("frames");
      const auto has = [&](const std::string& name) {
        return std::ranges::any_of(frames, [&](const nlohmann::json& frame) { return frame.at("name") == name; });
      };
      if (!has("busy")) return false;
      CHECK(std::ranges::count_if(frames, [](const nlohmann::json& frame) {
              return frame.at("name").get<std::string>().starts_with("filler_");
            }) == 20);
      CHECK(has("descend"));
      CHECK(has("a_global_name"));
      CHECK(has("work"));
      CHECK(has("main chunk"));
      CHECK(has("main"));
      seen = true;
      return true;
    });
    CHECK(seen);
  }
}

}  // namespace luaspy::live::live_identity_test
