// luaspy jit as a command. tests/jit/jit_v.py compares what it says of the compiler with LuaJIT's own words.

#include <signal.h>

#include <catch2/catch.hpp>

#include <algorithm>

#include "support/harness.h"

namespace luaspy::live::jit_test {
namespace {

// Half of the time in a loop that LuaJIT does not compile, the other half in one that it does.
const std::string closures =
    "local function build(n)\n"
    "  local t = {}\n"
    "  for i = 1, n do\n"
    "    t[i % 10] = function() return i end\n"
    "  end\n"
    "end\n"
    "local function plain(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n"
    "local stop = os.clock() + (tonumber(arg and arg[1]) or 1e9)\n"
    "io.write('READY\\n') io.flush()\n"
    "while os.clock() < stop do build(1000) plain(20000) end\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string report_of(const Running& program, const Words& options = {}) {
  const Finished finished = luaspy(Words{"jit", "--pid", std::to_string(program.pid()), "-d", "0.7"} + options);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return finished.out;
}

}  // namespace

TEST_CASE("what is not compiled, why, and what it costs", "[jit][smoke]") {
  const Folder folder;
  Running program(lua({folder.write("a.lua", closures)}, luajit));
  program.read_until("READY");
  const std::string text = report_of(program);
  INFO(text);
  const std::string verdict = text.substr(0, text.find('\n'));
  CHECK(has(verdict, " % of the time is interpreted; "));
  CHECK(has(verdict, "in build ("));
  CHECK(has(verdict, ", in the loop of lines 3-4: blacklisted after 11 attempts: NYI: bytecode"));
  CHECK(has(text, "It makes a closure each time"));
  CHECK(has(text, "Compiler of process " + std::to_string(program.pid()) + ": on; traces: "));
  CHECK(has(text, " of at most 1000; machine code: "));
  CHECK(has(text, "String table: "));
  const nlohmann::json json = nlohmann::json::parse(report_of(program, {"--json", "-r", "1000"}));
  INFO(json.dump(2));
  const nlohmann::json& row = json["functions"].at(0);
  CHECK(row["state"] == "blacklisted");
  CHECK((row["is_loop"] == true && row["first_line"] == 3 && row["last_line"] == 4));
  CHECK(row["interpreted_percent"].get<double>() > 15);
  CHECK(row["attempts"] == 11);
  // plain() has the time in machine code.
  const nlohmann::json& trace = json["traces"].at(0);
  CHECK((trace["start"]["line"] == 7 && trace["link"] == "loop" && trace["percent"].get<double>() > 3));
  CHECK(json["compilers"].at(0)["compiler_on"] == true);
}

// The outer one makes a closure, which is never compiled; the inner one is compiled.
TEST_CASE("functions that begin on one line are told apart", "[jit]") {
  const Folder folder;
  const std::string code =
      "local function sort(t) table.sort(t, function(a, b) local p = { a } return p[1] < b end) end\n"
      "for i = 1, 200000 do sort({2, 1}) end\n"  // until it is tried no more
      "io.write('READY\\n') io.flush()\n"
      "while true do local t = {} for j = 1, 50 do t[j] = (j * 7919) % 101 end sort(t) end\n";
  Running program(lua({folder.write("a.lua", code)}, luajit));
  program.read_until("READY");
  const std::string text = report_of(program, {"-r", "1000"});
  INFO(text);
  const auto below = [&](const std::string& name) {
    const std::size_t at = text.find(name, text.find("Outside of machine code"));
    const std::size_t line = at == std::string::npos ? at : text.find('\n', at);
    return line == std::string::npos ? "" : text.substr(line + 1, text.find('\n', line + 1) - line - 1);
  };
  CHECK(has(below("  sort ("), "blacklisted"));
  CHECK(has(below("  function ("), "compiled (trace "));
}

TEST_CASE("a program from its start to its end", "[jit]") {
  const Folder folder;
  const Finished finished = luaspy(Words{"jit", "--json", "--"} +
                                   lua({folder.write("a.lua", closures), "0.7"}, luajit));
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  const nlohmann::json json = nlohmann::json::parse(finished.out);
  INFO(json.dump(2));
  // It frees its traces when it ends: that is no flush.
  CHECK(json["compilers"].at(0)["flushes"] == 0);
  CHECK(json["compilers"].at(0)["compiler_on"] == true);
  CHECK_FALSE(json["traces"].empty());
  CHECK(json["functions"].at(0)["state"] == "blacklisted");
}

TEST_CASE("flushes and traces are seen as they come", "[jit]") {
  const Folder folder;
  const std::string code =
      "io.write('READY\\n') io.flush()\n"
      "while io.read() do\n"
      "  local s = 0\n"
      "  for i = 1, 1e6 do s = s + i end\n"
      "  io.write('DONE\\n') io.flush() io.read()\n"
      "  jit.flush()\n"
      "  io.write('FLUSHED\\n') io.flush()\n"
      "end\n";
  Running program(lua({folder.write("a.lua", code)}, luajit));
  program.read_until("READY");
  const std::string errors = folder.path("errors");
  Running watch(with_errors(errors, {luaspy_program, "jit", "--watch", "--pid", std::to_string(program.pid())}));
  program.await("luaspy watches", [&] { return has(read_file(errors), "watching"); });
  program.send("\n");
  program.read_until("DONE");
  const std::string trace = watch.read_line();
  INFO(trace);
  CHECK(has(trace, "a.lua:4, loop, "));
  program.send("\n");
  program.read_until("FLUSHED");
  CHECK(has(watch.read_line(), " flush: all traces are thrown away"));
  program.close_input();
}

TEST_CASE("asked to end in its first instant, it says what it knows", "[jit]") {
  // By the command itself, which is never a LuaJIT.
  const std::string ignored = "grep SigIgn /proc/self/status >&2; ";
  const Finished asked = luaspy({"jit", "--", "/bin/sh", "-c", ignored + "kill -INT $PPID"});
  INFO(asked.err);
  CHECK(asked.status == 11);
  CHECK(has(asked.err, "No samples: luaspy was asked to end before it saw a LuaJIT run.\n"));
  // The command ignores no signal because of luaspy.
  CHECK(has(asked.err, run({"/bin/sh", "-c", ignored}).err));
  const Folder folder;
  Running program(lua({folder.write("a.lua", closures)}, luajit));
  program.read_until("READY");
  Running luaspy({luaspy_program, "jit", "--pid", std::to_string(program.pid())});
  luaspy.await("it handles signals", [&] {  // SIGALRM: this test handles SIGINT, too, before luaspy is executed
    const std::string status = read_file("/proc/" + std::to_string(luaspy.pid()) + "/status");
    const std::size_t at = status.find("SigCgt:");
    return at != std::string::npos && (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGALRM - 1) & 1) != 0;
  });
  REQUIRE(::kill(luaspy.pid(), SIGINT) == 0);
  const std::string verdict = luaspy.read_line();
  INFO(verdict);
  CHECK((has(verdict, "There are no samples of Lua that runs.") || has(verdict, " % of the time is interpreted")));
  CHECK(luaspy.wait() == 0);
}

TEST_CASE("where there is no compiler, or it is off", "[jit]") {
  const Folder folder;
  const std::string script = folder.write("a.lua", closures);
  {
    Running program(command_of(target(luajit), Jit::off) + Words{script});
    program.read_until("READY");
    const std::string text = report_of(program);
    INFO(text);
    CHECK(text.starts_with("The JIT compiler is off (jit.off): "));
  }
  Running program(lua({script}));
  program.read_until("READY");
  const Finished finished = luaspy({"jit", "--pid", std::to_string(program.pid()), "-d", "0.2"});
  CHECK(finished.status == 5);
  CHECK(has(finished.err, "No LuaJIT: what runs there is another Lua, which has no compiler."));
}

TEST_CASE("a LuaJIT that was built without its compiler", "[jit][all]") {
  const Folder folder;
  Running program(lua({folder.write("a.lua", closures)}, "luajit-2.1.20220320-nojit"));
  program.read_until("READY");
  const std::string text = report_of(program);
  INFO(text);
  CHECK(has(text, "not known whether it is on. Its state was not found: "));
}

}  // namespace luaspy::live::jit_test
