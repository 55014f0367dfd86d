// Commands on a program that builds hostile states, code and names (programs/hostile.c): their
// output must be text without control characters, valid JSON, or a page without other scripts; in
// bounded time and memory.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "base/text.h"
#include "support/harness.h"

namespace luaspy::live {
namespace {

struct Hostile {
  explicit Hostile(const std::string& what)
      : program(compile(folder, "hostile", source_version("5.4"))), running({program, what}) {
    running.read_until("READY");
  }
  ~Hostile() { running.close_input(); }

  // Runs luaspy in at most 1 GiB of address space and 20 s.
  Finished luaspy(Words arguments) const {
    Words command = {"/bin/sh", "-c", "ulimit -v 1048576; exec \"$@\"", "sh", LUASPY_PROGRAM};
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

  static void check_text(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::replace(text.begin(), text.end(), '\t', ' ');
    CHECK(printable(text, text.size()) == text);
  }

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
  Hostile::check_text(text.out);
  CHECK(text.out.find("hostile") != std::string::npos);
  const Finished json = target.luaspy({"dump", "--pid", "PID", "--locals", "--coroutines", "--json"});
  REQUIRE(nlohmann::json::accept(json.out));
  const nlohmann::json dump = nlohmann::json::parse(json.out);
  Hostile::check_text(dump.dump(-1, ' ', false));
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
  Hostile::check_text(folded.out);
  for (const FoldedStack& stack : parse_folded(folded.out)) CHECK(stack.frames.size() < 20);  // no name splits a frame
  for (const char* const format : {"speedscope", "chrometrace", "callgrind", "flamegraph"}) {
    INFO(format);
    const Finished written = target.luaspy({"record", "--pid", "PID", "--duration", "0.2", "-f", format, "-o", "-"});
    if (format != std::string("flamegraph")) Hostile::check_text(written.out);
    if (format == std::string("speedscope") || format == std::string("chrometrace"))
      CHECK(nlohmann::json::accept(written.out));
    CHECK(written.out.find("window.owned") != std::string::npos);
    if (format == std::string("flamegraph")) CHECK(written.out.find("<script>window") == std::string::npos);
  }
  const std::string raw = target.folder.path("hostile.luaspy");
  target.luaspy({"record", "--pid", "PID", "--duration", "0.2", "-f", "raw", "-o", raw});
  for (const Words& view : std::vector<Words>{{"report", raw},
                                              {"report", raw, "--tree", "--states", "--by-thread"},
                                              {"report", raw, "--function", "outer"}})
    Hostile::check_text(target.luaspy(view).out);
  Hostile::check_text(target.luaspy({"top", "--pid", "PID", "--batch", "--count", "1", "--interval", "0.3"}).out);
  Hostile::check_text(target.luaspy({"ps", "--states"}).out);
}

}  // namespace luaspy::live
