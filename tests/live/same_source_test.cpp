// Functions that were made of the same source, or of sources that begin alike: each has its own
// name.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>

#include "named_stacks.h"
#include "support/harness.h"

namespace luaspy::live::same_source_test {
namespace {

// A wrapper without debug information, as shipped code has none: nothing but the tables that hold
// its closures says which is which.
constexpr const char* wrapper = R"(
local source = [[return function(f)
  return function(n) local s = 0 for i = 1, n do s = s + i % 7 end return f(s) end
end]]
local wrap = load(string.dump(load(source), true))()
)";

}  // namespace

TEST_CASE("closures of one prototype have the names under which they are found", "[names]") {
  const Folder folder;
  const std::string script = folder.write("closures.lua", wrapper + std::string(R"(
package.loaded.shop = {buy = wrap(function(s) return s end), sell = wrap(function(s) return s end)}
local shop = package.loaded.shop
)") + say_ready + "while true do local a = pcall(shop.buy, 1e5) local b = pcall(shop.sell, 1e5) end\n");
  Running running(lua({script}));
  running.read_until("READY");
  const NamedStacks recorded = record_names(running, folder, 300);
  INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
  CHECK(recorded.with("shop.buy (?:2)") > 60);
  CHECK(recorded.with("shop.sell (?:2)") > 60);
  CHECK(recorded.frames_at("(?:2").size() == 2);
  const Finished top = luaspy({"top", "--pid", std::to_string(running.pid()), "--batch", "--count", "1", "--interval",
                               "1", "--max-stopped", "100"});
  INFO(top.out);
  CHECK(top.out.find("shop.buy (?:2)") != std::string::npos);
  CHECK(top.out.find("shop.sell (?:2)") != std::string::npos);
}

TEST_CASE("functions of the same source in two states have the names of their states", "[names][all]") {
  const Folder folder;
  const std::string script = folder.write("states.lua", wrapper + std::string(R"(
local shop = {buy = wrap(function(s) return s end), sell = wrap(function(s) return s end)}
package.loaded["shop" .. which] = shop
local one = load(string.dump(load("return function(n) local s = 0 for i = 1, n do s = s + i % 7 end end"), true))()
package.loaded["bank" .. which] = {total = one}
started()
while true do local a = pcall(shop.buy, 1e5) local b = pcall(shop.sell, 1e5) local c = pcall(one, 1e5) end
)"));
  Running running({compile(folder, "pair", source_version("5.4"), {"-pthread"}), script});
  running.read_until("READY");
  const NamedStacks recorded = record_names(running, folder, 1200);
  INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
  for (const char* const state : {"1", "2"}) {
    CHECK(recorded.with(fmt::format("shop{}.buy (?:2)", state)) > 60);
    CHECK(recorded.with(fmt::format("shop{}.sell (?:2)", state)) > 60);
    CHECK(recorded.with(fmt::format("bank{}.total (?:1)", state)) > 60);
  }
  CHECK(recorded.frames_at("(?:").size() == 6);
  // In one look at both threads, too.
  for (const Words& options : std::vector<Words>{{}, {"--locals"}}) {
    const nlohmann::json look = dump(running.pid(), options);
    for (const nlohmann::json& thread : look.at("threads")) {
      for (const nlohmann::json& frame : thread.at("frames")) {
        if (frame.at("kind") != "lua" || frame.at("file") != "?") continue;
        const std::string name = frame.at("name");
        INFO(name);
        CHECK((name.starts_with("shop1.") || name.starts_with("shop2.") || name.starts_with("bank1.") ||
               name.starts_with("bank2.")));
      }
    }
  }
}

TEST_CASE("chunks whose texts begin alike are not taken for each other", "[names]") {
  const Folder folder;
  const std::string script = folder.write("template.lua", std::string(R"(
local header = "-- " .. ("made by a template engine, do not change; "):rep(8) .. "\n"
local function page(name)
  local text = "local function NAME(NAME_n) local s = 0 for i = 1, NAME_n do s = s + i % 7 end return s end\n"
  return load(header .. (text .. "pcall(NAME, 1e6)\n"):gsub("NAME", name))
end
)") + say_ready + R"(
while true do
  page("alpha")() collectgarbage() collectgarbage()
  page("omega")() collectgarbage() collectgarbage()
end
)");
  Running running(lua({script}));
  running.read_until("READY");
  const NamedStacks recorded = record_names(running, folder, 300);
  INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
  std::set<std::string> names;
  for (const std::string& frame : recorded.frames_at("made by a template")) {
    if (!frame.starts_with("main chunk")) names.insert(frame.substr(0, frame.find(' ')));
    CHECK(frame.find('#') == frame.npos);
  }
  CHECK(names.contains("alpha"));
  CHECK(names.contains("omega"));
}

TEST_CASE("functions of chunks of one name are told apart by their names, but not variables", "[names][luas]") {
  const Folder folder;
  const std::string script = folder.write("templates.lua", std::string(R"(
local load = loadstring or load
local function template(name)
  return load(([[
local function NAME(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end
local s = NAME(20000)
local again = NAME
s = again(5000)
return s]]):gsub("NAME", name), "=tpl")
end
local one, other = template("alpha"), template("omega")
)") + say_ready + "while true do local a = one() local b = other() end\n");
  for (const Words& interpreter : interpreters()) {
    INFO(fmt::format("{}", fmt::join(interpreter, " ")));
    Running running(interpreter + Words{script});
    running.read_until("READY");
    const NamedStacks recorded = record_names(running, folder, 200);
    INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
    CHECK(recorded.with("alpha (tpl:1)") > 50);
    CHECK(recorded.with("omega (tpl:1)") > 50);
    CHECK(recorded.frames_at("(tpl:1").size() == 2);
  }
}

}  // namespace luaspy::live::same_source_test
