// Commands on a program that builds hostile states, code and names (programs/hostile.c): their
// output must be text without control characters, valid JSON, or a page without other scripts; in
// bounded time and memory.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "base/text.h"
#include "named_stacks.h"
#include "support/harness.h"

namespace luaspy::live::hostile_test {
namespace {

void check_text(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\t', ' ');
  CHECK(printable(text, text.size()) == text);
}

// Runs luaspy on a target in at most 1 GiB of address space and 20 s.
Finished luaspy_on(const Running& running, Words arguments) {
  Words command = {"/bin/sh", "-c", "ulimit -v 1048576; exec \"$@\"", "sh", luaspy_program};
  for (std::string& argument : arguments)
    command.push_back(argument == "PID" ? std::to_string(running.pid()) : std::move(argument));
  const auto start = std::chrono::steady_clock::now();
  Finished finished = run(command);
  INFO(arguments.front() << ": " << finished.err);
  CHECK(finished.status == 0);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  check_text(finished.err);
  return finished;
}

struct Hostile {
  explicit Hostile(const std::string& what)
      : program(compile(folder, "hostile", source_version("5.4"))), running({program, what}) {
    running.read_until("READY");
  }
  ~Hostile() { running.close_input(); }
  Finished luaspy(Words arguments) const { return luaspy_on(running, std::move(arguments)); }

  Folder folder;
  std::string program;
  Running running;
};

// The number of Lua frames in it.
std::size_t lua_frames(const nlohmann::json& dump) {
  std::size_t frames = 0;
  for (const nlohmann::json& frame : dump.at("threads").at(0).at("frames")) frames += frame.at("kind") == "lua";
  return frames;
}

}  // namespace

TEST_CASE("hostile states and code: dumps are sound, and soon there", "[hostile]") {
  const std::string what = GENERATE("names", "cycle", "sizes", "endless", "backwards", "elf");
  INFO(what);
  const Hostile target(what);
  const Finished text = target.luaspy({"dump", "--pid", "PID", "--locals", "--coroutines"});
  check_text(text.out);
  CHECK(text.out.find("hostile") != std::string::npos);
  const Finished json = target.luaspy({"dump", "--pid", "PID", "--locals", "--coroutines", "--json"});
  REQUIRE(nlohmann::json::accept(json.out));
  const nlohmann::json dump = nlohmann::json::parse(json.out);
  check_text(dump.dump(-1, ' ', false));
  const std::size_t frames = lua_frames(dump);
  INFO(json.out.substr(0, 3000));
  // The main chunk, the coroutine's function and `outer`.
  if (what == "names" || what == "elf" || what == "endless" || what == "backwards") CHECK(frames == 3);
  if (what == "sizes") CHECK(frames == 2);  // `outer` is [unreadable]
  CHECK(frames < 1000);
  CHECK(target.running.alive());
}

TEST_CASE("hostile names in every format", "[hostile]") {
  const Hostile target("names");
  const Finished folded = target.luaspy(
      {"record", "--pid", "PID", "--duration", "0.3", "-f", "folded", "-o", "-", "--threads"});
  check_text(folded.out);
  for (const FoldedStack& stack : parse_folded(folded.out)) CHECK(stack.frames.size() < 20);  // no name splits a frame
  for (const char* const format : {"speedscope", "chrometrace", "callgrind", "svg", "flamegraph"}) {
    INFO(format);
    const Finished written = target.luaspy({"record", "--pid", "PID", "--duration", "0.2", "-f", format, "-o", "-"});
    if (format != std::string("flamegraph")) check_text(written.out);
    if (format == std::string("speedscope") || format == std::string("chrometrace"))
      CHECK(nlohmann::json::accept(written.out));
    CHECK(written.out.find("window.owned") != std::string::npos);
    if (format != std::string("flamegraph")) continue;
    CHECK(written.out.find("<script>window") == std::string::npos);
    CHECK(written.out.find("2J\\\\u202e") != std::string::npos);  // JSON in ASCII: a name with a backslash, not with
    CHECK(written.out.find("2J\\u202e") == std::string::npos);    // the direction mark itself
  }
  const std::string raw = target.folder.path("hostile.luaspy");
  target.luaspy({"record", "--pid", "PID", "--duration", "0.2", "-f", "raw", "-o", raw});
  for (const Words& view : std::vector<Words>{{"report", raw},
                                              {"report", raw, "--tree", "--states", "--by-thread"},
                                              {"report", raw, "--function", "outer"}})
    check_text(target.luaspy(view).out);
  check_text(target.luaspy({"top", "--pid", "PID", "--batch", "--count", "1", "--interval", "0.3"}).out);
  check_text(target.luaspy({"ps", "--states"}).out);
}

TEST_CASE("a hostile source: names that are long, for many functions", "[hostile]") {
  constexpr int functions = 60'000;
  const std::string name(1 << 20, 'a');
  std::string many, script;
  for (int i = 0; i < functions; ++i) many += "f=function()end,\n";
  const Folder folder;
  // A table with a long path, one inside a table with a long name, and a long statement.
  for (const std::string& hostile : {"x." + name + " = {\n" + many + "}\n", "x = {" + name + " = {\n" + many + "}}\n",
                                     "function x." + name + "() end x = {\n" + many + "}\n"}) {
    script = "local x = {}\nlocal function spin(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end\n" +
             hostile + say_ready + "while true do pcall(spin, 1e6) end\n";
    Running running(lua({folder.write("source.lua", script)}));
    running.read_until("READY");
    const Finished folded = luaspy_on(running,
                                      {"record", "--pid", "PID", "--duration", "0.5", "-f", "folded", "-o", "-"});
    CHECK(folded.out.find("spin (") != std::string::npos);
    CHECK(folded.out.find("aaaa") == std::string::npos);
    const Finished now = luaspy_on(running, {"dump", "--pid", "PID", "--locals"});
    CHECK(now.out.find("spin (") != std::string::npos);
  }
}

}  // namespace luaspy::live::hostile_test
