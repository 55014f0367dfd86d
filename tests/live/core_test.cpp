// Core files from the kernel and from gcore: dump must show the same for a core file as for the
// process while it lived.

#include <signal.h>

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "support/harness.h"

namespace luaspy::live::core_test {
namespace {

using Json = nlohmann::json;

const Words details = {"--locals", "--coroutines"};

Json dump_core(const std::string& core, const Words& options = {}) {
  const Finished finished = luaspy(Words{"dump", "--json", "--core", core} + details + options);
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  return Json::parse(finished.out);
}

// Runs a command in its own folder, where it may leave a core. The program is copied there, so that
// it can be removed.
Words in(const Folder& folder, Words command) {
  const auto program = std::ranges::find_if(command, [](const std::string& word) {
    return word.find("/lua") != std::string::npos && std::filesystem::is_regular_file(word);
  });
  REQUIRE(program != command.end());
  const std::string copy = folder.path("program");
  std::filesystem::copy_file(*program, copy);
  *program = copy;
  return Words{"/bin/sh", "-c", "cd \"$0\" && ulimit -c unlimited && exec \"$@\"", folder.path()} + command;
}

std::string core_in(const Folder& folder) {
  const std::string pattern = read_file("/proc/sys/kernel/core_pattern");
  INFO("kernel.core_pattern is " << pattern
                                 << "; the test needs one that leaves the file where the process is, such as 'core'");
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().filename().string().starts_with("core")) found = entry.path();
  }
  REQUIRE(!found.empty());
  return found;
}

std::string gcore(const Folder& folder, pid_t pid) {
  const Finished finished = run({"gcore", "-o", folder.path("gcore"), std::to_string(pid)});
  INFO(finished.out << finished.err);
  REQUIRE(finished.status == 0);
  return folder.path(fmt::format("gcore.{}", pid));
}

void await_sleep(Running& running) {
  running.await("it reads",
                [&] { return read_file(fmt::format("/proc/{}/syscall", running.pid())).starts_with("0 "); });
}

// The stack of the only thread. A wait only has its file's name while the process lives, and a C
// function has no name if its library is not available. A core has nothing of the kernel.
Json stack_of(const Json& dump) {
  Json stack = Json::array();
  for (const Json& frame : dump.at("threads").at(0).at("frames")) {
    if (frame.at("kind") != "kernel") stack.push_back(frame);
  }
  return stack;
}

Json lua_of(const Json& dump) {
  Json lua = Json::array();
  for (const Json& frame : stack_of(dump)) {
    if (frame.at("kind") == "lua") lua.push_back(frame);
  }
  return lua;
}

Json coroutines_of(const Json& dump) {
  Json groups = Json::array();
  for (const Json& state : dump.at("states")) groups.push_back(state.at("groups"));
  return groups;
}

void check_same(const Json& live, const Json& core) {
  CHECK(stack_of(core) == stack_of(live));
  CHECK(core.at("states") == live.at("states"));
  CHECK(core.at("lua") == live.at("lua"));
  CHECK(core.at("threads").at(0).at("vm_state") == live.at("threads").at(0).at("vm_state"));
  CHECK(core.at("threads").at(0).at("wait").at("system_call") == "read");
}

// Without the program, and without all files, the Lua half must be the same, and the native half
// must not be invented.
void check_without_files(const Json& live, const Folder& folder, const std::string& core) {
  std::filesystem::rename(folder.path("program"), folder.path("moved"));
  check_same(live, dump_core(core, {"--exe", folder.path("moved")}));
  for (const Words& options : {Words{}, Words{"--sysroot", folder.path()}}) {
    const Json without = dump_core(core, options);
    CHECK(lua_of(without) == lua_of(live));
    CHECK(coroutines_of(without) == coroutines_of(live));
    CHECK(!without.at("core").at("missing_files").empty());
    for (const Json& frame : stack_of(without)) {
      if (frame.at("kind") != "native") continue;
      INFO(frame.dump());
      CHECK(std::ranges::any_of(stack_of(live), [&](const Json& other) {
        return other.at("kind") == "native" &&
               (other.at("name") == frame.at("name") || other.at("file") == frame.at("name"));
      }));
    }
  }
  const Finished none = luaspy({"dump", "--core", core, "--exe", "/no/such/program"});
  CHECK(none.status == 2);
  CHECK(none.err.find("Cannot read /no/such/program: No such file or directory.") != std::string::npos);
  const Finished wrong = luaspy({"dump", "--core", core, "--exe", "/bin/true"});
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("/bin/true is not the program that") != std::string::npos);
}

// Whatever part is missing, dump must give an answer or a reason, and only frames that the whole
// file has.
void check_cut(const Json& live, const Folder& folder, const std::string& core) {
  const std::string whole = read_file(core), cut = folder.path("cut");
  constexpr std::size_t parts = 24;
  for (std::size_t i = 0; i < parts; ++i) {
    std::ofstream(cut, std::ios::binary) << std::string_view(whole).substr(0, whole.size() * i / parts);
    const Finished finished = luaspy(Words{"dump", "--json", "--core", cut, "--exe", folder.path("moved")} + details);
    INFO(i << " of " << parts << ": " << finished.err);
    CHECK((finished.status == 0 || finished.status == 2 || finished.status == 5 || finished.status == 6));
    if (finished.status != 0) {
      CHECK(!finished.err.empty());
      continue;
    }
    const Json json = Json::parse(finished.out);
    CHECK(json.at("core").at("missing_bytes") > 0);
    for (const Json& frame : lua_of(json)) {
      INFO(frame.dump());
      CHECK(std::ranges::any_of(lua_of(live), [&](const Json& other) {
        return other.at("line_defined") == frame.at("line_defined") || frame.at("name") == "function (?)";
      }));
    }
  }
}

void check_waiting(const Words& command) {
  const Folder folder;
  Running running(in(folder, command) + Words{workload("core.lua")});
  running.read_until("READY");
  await_sleep(running);
  const Json live = dump(running.pid(), details);
  REQUIRE(lua_of(live).size() == 5);
  check_same(live, dump_core(gcore(folder, running.pid())));
  REQUIRE(::kill(running.pid(), SIGSEGV) == 0);
  CHECK(running.wait() == 128 + SIGSEGV);
  const std::string core = core_in(folder);
  const Json dumped = dump_core(core);
  check_same(live, dumped);
  CHECK(dumped.at("core").at("ended_by") == "signal 11 (Segmentation fault)");
  check_without_files(live, folder, core);
  check_cut(live, folder, core);
}

const TargetSpec& newest(const std::string& series) {
  const TargetSpec* found = nullptr;
  for (const TargetSpec& spec : targets()) {
    if (spec.name.starts_with("lua-" + series) && spec.name.ends_with("-O2")) found = &spec;
  }
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("a core file of PUC Lua is as the process was", "[core][all][luas]") {
  const std::string series = GENERATE_COPY(from_range(prepared({"5.1", "5.2", "5.3", "5.4", "5.5"})));
  INFO(newest(series).name);
  check_waiting(newest(series).command);
}

TEST_CASE("a core file of LuaJIT is as the process was", "[core][luas]") {
  const std::string name = GENERATE_COPY(from_range(prepared(
      {"debian-luajit-bookworm", "luajit-2.0.20260330-gc32", "luajit-2.1.newest-gc64", "luajit-2.1.newest-gc32"})));
  INFO(name);
  check_waiting(command_of(target(name), Jit::on));
}

TEST_CASE("a core file of a trace has the functions that are inlined into it", "[core]") {
  const Folder folder;
  Running running(in(folder, command_of(target(luajit), Jit::on)) + Words{workload("core.lua"), "work"});
  running.read_until("READY");
  running.await("it runs machine code",
                [&] { return dump(running.pid()).at("threads").at(0).at("vm_state") == "machine code"; });
  std::vector<std::string> seen;
  for (int i = 0; i < 5; ++i) {
    const Json json = dump_core(gcore(folder, running.pid()));
    std::vector<std::string> names;
    for (const Json& frame : lua_of(json)) names.insert(names.begin(), frame.at("name"));
    INFO(json.dump(1));
    const std::vector<std::string> all = {"main chunk", "loop", "branch", "leaf"};
    CHECK((names.size() >= 2 && names.size() <= all.size() && std::equal(names.begin(), names.end(), all.begin())));
    CHECK(json.at("threads").at(0).at("state") == "running");
    CHECK(json.at("threads").at(0).at("native_complete") == true);
  }
}

TEST_CASE("threads of a core file that hold each other's mutexes are told", "[core][luas]") {
  const Folder folder;
  Running running({compile(folder, "deadlock", source_version("5.4"))});
  running.read_until("READY");
  running.await("both wait", [&] { return dump(running.pid()).contains("deadlocks"); });
  const Json live = dump(running.pid());
  const Json core = dump_core(gcore(folder, running.pid()));
  CHECK(core.at("threads").size() == live.at("threads").size());
  CHECK(core.at("deadlocks") == live.at("deadlocks"));
}

TEST_CASE("what is no core file is said to be none", "[core]") {
  const Folder folder;
  for (const std::string& path :
       {folder.path("nothing"), folder.write("text", "no core"), std::string("/bin/sh"), folder.path()}) {
    const Finished finished = luaspy({"dump", "--core", path});
    INFO(path << ": " << finished.err);
    CHECK(finished.status == 2);
    CHECK(finished.err.find(path) != std::string::npos);
  }
  Running sleeper({"/bin/sleep", "1000"});
  sleeper.await("it sleeps", [&] {
    return read_file(fmt::format("/proc/{}/wchan", sleeper.pid())).find("nanosleep") != std::string::npos;
  });
  const Finished finished = luaspy({"dump", "--core", gcore(folder, sleeper.pid())});
  CHECK(finished.status == 5);
  CHECK(finished.err.find("No Lua in") != std::string::npos);
}

}  // namespace luaspy::live::core_test
