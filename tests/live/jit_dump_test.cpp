// What dump --traces says of LuaJIT's compiler.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/harness.h"

namespace luaspy::live::jit_dump_test {
namespace {

using Json = nlohmann::json;

// A function of each kind, called by the one before, with decisions made before the last one waits.
const std::string kinds_of_functions =
    "local function build(n, inner)\n"
    "  local t = {}\n"
    "  for i = 1, n do\n"
    "    t[i % 10] = function() return i end\n"
    "  end\n"
    "  if inner then inner() end\n"
    "end\n"
    "local function plain(n, inner)\n"
    "  local s = 0\n"
    "  for i = 1, n do s = s + i % 7 end\n"
    "  if inner then inner() end\n"
    "  return s\n"
    "end\n"
    "local function off(n, inner)\n"
    "  local s = 0\n"
    "  for i = 1, n do s = s + i end\n"
    "  if inner then inner() end\n"
    "  return s\n"
    "end\n"
    "jit.off(off)\n"
    "local function cold() io.write('READY\\n') io.flush() io.read() return 1 end\n"
    "build(200000) plain(20000) off(20000)\n"
    "build(1, function() plain(1, function() off(1, function() return 1 + cold() end) end) end)\n";

Json dumped(const Words& options) {
  const Finished finished = luaspy(Words{"dump", "--traces", "--json"} + options);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return Json::parse(finished.out);
}

Json function_at(const Json& functions, int line_defined) {
  const auto found = std::ranges::find_if(functions,
                                          [&](const Json& each) { return each.at("line_defined") == line_defined; });
  REQUIRE(found != functions.end());
  return *found;
}

Json frame_at(const Json& dump, int line_defined) {
  Json lua;
  for (const Json& frame : dump.at("threads").at(0).at("frames")) {
    if (frame.at("kind") == "lua") lua.push_back(frame);
  }
  return function_at(lua, line_defined);
}

void check_decisions(const Json& dump) {
  INFO(dump.dump(2));
  const Json& compiler = dump.at("states").at(0).at("compiler");
  CHECK((compiler.at("found") == true && compiler.at("on") == true && compiler.at("all_functions") == true));
  CHECK(compiler.at("traces").get<int>() >= 1);
  const Json blacklisted = frame_at(dump, 1).at("compiler");
  REQUIRE(blacklisted.at("starts").size() == 2);
  const Json& loop = blacklisted["starts"][1];
  CHECK((loop.at("entry") == false && loop.at("first_line") == 3 && loop.at("state") == "blacklisted"));
  CHECK(loop.at("attempts") == 11);
  CHECK(loop.at("reason").get<std::string>().starts_with("NYI: bytecode"));
  CHECK(loop.at("advice").get<std::string>().starts_with("It makes a closure each time"));
  CHECK(blacklisted.at("traces").empty());
  const Json compiled = frame_at(dump, 8).at("compiler");
  REQUIRE(compiled.at("starts").size() == 2);
  const Json& compiled_loop = compiled["starts"][1];
  CHECK((compiled_loop.at("state") == "compiled" && compiled_loop.at("first_line") == 10));
  const Json& traces = compiled.at("traces");
  CHECK(std::ranges::find(traces, compiled_loop.at("trace")) != traces.end());
  const Json off = frame_at(dump, 14).at("compiler");
  CHECK(off.at("jit_off") == true);
  CHECK(off.at("starts").at(0).at("state") == "function off");
  const Json cold = frame_at(dump, 21).at("compiler");
  CHECK((cold.at("starts").at(0).at("state") == "not tried" && cold.at("traces").empty()));
  // The list of all functions has the same, and nothing of those about which nothing was decided.
  const Json& functions = compiler.at("functions");
  CHECK(function_at(functions, 1) == blacklisted);
  CHECK(function_at(functions, 8) == compiled);
  CHECK(function_at(functions, 14) == off);
  CHECK(std::ranges::none_of(functions, [](const Json& each) { return each.at("line_defined") == 21; }));
}

void check_live(const std::string& name) {
  INFO(name);
  const Folder folder;
  Running program(lua({folder.write("a.lua", kinds_of_functions)}, name));
  program.read_until("READY");
  program.await("it reads",
                [&] { return read_file(fmt::format("/proc/{}/syscall", program.pid())).starts_with("0 "); });
  const std::string pid = std::to_string(program.pid());
  check_decisions(dumped({"--pid", pid}));
  check_decisions(dumped({"--pid", pid, "--locals", "--coroutines"}));  // in a standstill
  const Finished text = luaspy({"dump", "--traces", "--pid", pid});
  INFO(text.out);
  for (const char* const part :
       {"        compiler: loop 3-4: blacklisted after 11 attempts: NYI: bytecode",
        "        compiler: loop 10: compiled (trace ", "        compiler: JIT is off for it (jit.off)\n",
        "        compiler: no attempt is known: ", "    compiler: on; traces: ",
        "a.lua:14: JIT is off for it (jit.off)\n"})
    CHECK(text.out.find(part) != std::string::npos);
  const Finished without = luaspy({"dump", "--pid", pid});
  CHECK(without.out.find("compiler: ") == std::string::npos);
  const Finished saved = run({"gcore", "-o", folder.path("gcore"), pid});
  REQUIRE(saved.status == 0);
  check_decisions(dumped({"--core", folder.path("gcore." + pid)}));
}

}  // namespace

TEST_CASE("what is compiled of the functions that a dump shows", "[jit]") { check_live(luajit); }

TEST_CASE("the same with references of 64 and of 32 bits", "[jit][all]") {
  for (const char* const name :
       {"luajit-2.1.newest-gc64", "luajit-2.1.newest-gc32", "luajit-2.0.20260330-gc32", "luajit-2.1.20170501-gc64"})
    check_live(name);
}

TEST_CASE("a program whose compiler is off says so for each function", "[jit]") {
  const Folder folder;
  Running program(command_of(target(luajit), Jit::off) + Words{folder.write("a.lua", kinds_of_functions)});
  program.read_until("READY");
  const Finished text = luaspy({"dump", "--traces", "--pid", std::to_string(program.pid())});
  INFO(text.out);
  CHECK(text.out.find("        compiler: the JIT compiler is off\n") != std::string::npos);
  CHECK(text.out.find("    compiler: off (jit.off); traces: 0\n") != std::string::npos);
}

TEST_CASE("a PUC Lua has no compiler to speak of", "[jit]") {
  const Folder folder;
  Running program(lua({folder.write("a.lua", "io.write('READY\\n') io.flush() io.read()\n")}));
  program.read_until("READY");
  CHECK_FALSE(dumped({"--pid", std::to_string(program.pid())}).at("states").at(0).contains("compiler"));
}

}  // namespace luaspy::live::jit_dump_test
