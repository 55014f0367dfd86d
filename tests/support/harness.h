#pragma once
// Real programs for live tests: started by a test, ended by it by pid, read over pipes. Tests do
// not sleep: a target says READY.

#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "support/child.h"

namespace luaspy::live {

using tests::Child;
using tests::Folder;
using tests::read_file;
using tests::Words;
Words operator+(Words left, const Words& right);

// A line of targets.tsv, hosts.tsv, or their LuaJIT counterparts, which tests/targets/prepare.sh
// writes.
struct TargetSpec {
  std::string name, version, kind;
  Words command;
  std::string core;  // the file that holds the Lua core
  std::string variant;
};
// What a test case has of these depends on which Luas are prepared: it needs the tag [luas].
const std::vector<TargetSpec>& targets();
const std::vector<TargetSpec>& numbers();  // Luas with other types of numbers: variant says which
const std::vector<TargetSpec>& luajits();
const std::vector<TargetSpec>& sources();  // of Luas and LuaJITs: version is the folder, kind its static library
const TargetSpec& target(const std::string& name);  // of both
enum class Jit { on, off };
Words command_of(const TargetSpec& luajit, Jit jit);  // of a luajit program, which has the option for this
inline constexpr const char *lua54 = "debian-lua5.4-bookworm", *luajit = "debian-luajit-bookworm";
Words lua(const Words& arguments, const std::string& name = lua54);  // the command of a target, with arguments
// The same of `lua54`, copied with its libraries into the folder: a user who may not search the folder of the checkout
// can run it.
Words lua_for_all(const Folder& folder, const Words& arguments);
Words host(const std::string& name);
Words sanitized(const std::string& kind);  // a Lua built with a sanitizer: asan, tsan, msan
std::string core_of_host(const std::string& name);
std::string workload(const std::string& file);
// The end of a workload function's text in profiles, whatever its name is: "share.lua:39)". The
// function is found by the start of its first line.
std::string place(const std::string& file, const std::string& definition);

// The program under test: what LUASPY_PROGRAM says in the environment, else the one of this build.
extern const std::string luaspy_program;

struct Finished {
  int status = 0;  // in the form of a shell
  std::string out, err;
};
// Runs a command to its end. Fails the test if it takes longer than a minute.
Finished run(const Words& command, const std::string& input = {});
Finished luaspy(const Words& arguments);

// Compiles tests/live/programs/NAME.c into the folder and returns the executable's path. With a Lua
// version of sources.tsv (5.4.7) or luajit-sources.tsv (2.1.20260824-gc64) it is linked with that
// Lua's static library and LUA is defined. `options` are for the compiler and the linker.
std::string compile(const Folder& folder, const std::string& name, const std::string& lua_version = {},
                    const Words& options = {});
std::string compile_shared(const Folder& folder, const std::string& name);  // as a shared library
// Compiles tests/live/programs/NAME.c once for each Lua version with PART=part_0, part_1, … and
// NAME="=part_0", …, puts that Lua's static library into each of these objects, and links them with
// the program itself. All of Lua's symbols are local, or have a prefix.
enum class Symbols { local, prefixed };
std::string compile_several(const Folder& folder, const std::string& name, const Words& lua_versions, Symbols symbols);
// The newest version in sources.tsv that starts so, or a version that luajit-sources.tsv has.
std::string source_version(const std::string& start);
// Of names of targets and beginnings of source versions, those that are prepared: all of them,
// unless prepare.sh was called for less than all. The test case needs the tag [luas]. An empty
// result is a failure: such a test case needs the tag [all].
Words prepared(const Words& names);

// The command, with its standard error going to a file; the process is the command's own.
Words with_errors(const std::string& file, const Words& command);

// A line of luaspy's output with -f folded: frames outermost first, and the number of samples.
struct FoldedStack {
  std::vector<std::string> frames;
  std::int64_t count = 0;
};
std::vector<FoldedStack> parse_folded(const std::string& text);

// A program that runs while a test looks at it.
class Running {
 public:
  explicit Running(const Words& command);
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running();

  pid_t pid() const { return child_.pid(); }
  // Lines on its standard output up to `last`, without it; fails the test if the program ends
  // without printing it.
  std::vector<std::string> read_until(const std::string& last);
  std::string read_line();  // the next one; fails the test if none comes
  void send(const std::string& text);
  void close_input();
  // Waits for its end; returns its status in the form of a shell. Fails the test if it takes longer
  // than a minute.
  int wait();
  bool alive() const { return child_.alive(); }
  // Waits until `holds` returns true, which is called every few ms; fails the test if the program
  // ends first, or after a minute.
  void await(const std::string& what, const std::function<bool()>& holds);
  std::string rest();  // its output until its end

 private:
  using Pipe = std::array<int, 2>;
  Running(const Words& command, const Pipe& input, const Pipe& output);
  std::optional<std::string> next_line();  // nullopt: it has closed its output

  Child child_;
  int input_ = -1, output_ = -1;
  std::string buffer_;
};

// dump --json of a process, parsed.
nlohmann::json dump(pid_t pid, const Words& options = {});

}  // namespace luaspy::live
