// What functions are called: the same in every Lua, and what their author would say.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <sstream>

#include "attach/program_name.h"
#include "attach/source_files.h"
#include "base/text.h"
#include "named_stacks.h"
#include "support/harness.h"

namespace luaspy::live::names_test {
namespace {

// Every function that has to be found does the same work.
constexpr const char* work = " local x = 0 for i = 1, 20000 do x = x + i % 7 end ";

std::string with_work(std::string text) {
  for (std::size_t at; (at = text.find("WORK")) != std::string::npos;) text.replace(at, 4, work);
  return text;
}

constexpr const char* bank = R"(
local bank = {}
local Account = {}
Account.__index = Account
bank.Account = Account
function Account.new() return setmetatable({}, Account) end
function Account:interest() WORK end
Account.audit = function(self) WORK end
function Account.__add(a, b) WORK return a end
local Savings = setmetatable({}, {__index = Account})
Savings.__index = Savings
bank.make = function() return setmetatable({}, Savings) end
function Savings:interest() WORK end
function bank.total() WORK end
return bank
)";

// A class as middleclass makes it. The name of its chunk says of no file and no text, so that only
// package.loaded tells its functions.
constexpr const char* zoo = R"(
local zoo = {}
local methods = {} methods.__index = methods
zoo.Animal = setmetatable({__instanceDict = methods}, {__newindex = methods})
function zoo.Animal:speak() WORK end
zoo.Animal.run = function(animal) WORK end
function zoo.count() WORK end
zoo.keeper = {__index = {}}
local mt = {}
mt["__" .. "mul"] = function(a, b) WORK return a end
zoo.number = function() return setmetatable({}, mt) end
zoo.cages = function(f) local n = 0 return function() WORK n = n + 1 if n < 3 then return n end end end
zoo.animal = function() return setmetatable({}, methods) end
return zoo
)";

constexpr const char* program = R"(
package.path = arg[1] .. "/?.lua"
local load = loadstring or load
local bank = require "bank"
package.loaded.zoo = assert(load(io.open(arg[1] .. "/zoo.txt"):read("*a"), "=zoo"))()
local zoo = package.loaded.zoo
local inline = load("local function inline() local x = 0 for i = 1, 20000 do x = x + i % 7 end end return inline")()
local handlers = {
  accounts = function() WORK end,
}
function handlers.savings() WORK end
routes = {}
function routes.index() WORK end
local pair = {one = function() WORK end, two = function() WORK end}
local function dispatch(name) return handlers[name]() end
local function protected() WORK end
local words, long = ("word "):rep(600), ("a"):rep(300)
local account, savings, animal, number = bank.Account.new(), bank.make(), zoo.animal(), zoo.number()
local keys = {"one", "two"}
io.stdout:write("READY\n") io.stdout:flush()
while true do
  collectgarbage() -- frees the closures of iterators, so that others are made in their places
  account:interest() account:audit() savings:interest() local sum = account + account
  bank.total()
  animal:speak() animal:run() zoo.count() local product = number * number
  for i in zoo.cages() do end
  dispatch("accounts") dispatch("savings")
  for i = 1, 2 do pair[keys[i]]() end
  routes.index()
  pcall(protected)
  inline()
  for i = 1, 3 do for word in string.gmatch(words, "%a+") do end for word in words:gmatch("%a+") do end end
  for word in string.gmatch(long, "a*b") do end for word in long:gmatch("a*b") do end
  for i = 1, 5 do for line in io.lines(arg[1] .. "/lines.txt") do end end
end
)";

struct Program {
  Program() {
    folder.write("bank.lua", with_work(bank));
    folder.write("zoo.txt", with_work(zoo));
    std::string lines;
    for (int i = 0; i < 600; ++i) lines += "line\n";
    folder.write("lines.txt", lines);
    script = folder.write("program.lua", with_work(program));
  }
  Words command(Words interpreter) const {
    interpreter.insert(interpreter.end(), {script, std::filesystem::path(script).parent_path().string()});
    return interpreter;
  }
  Folder folder;
  std::string script;
};

std::string line_with(const std::string& text, const std::string& words) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(words) != std::string::npos) return line;
  }
  return {};
}

}  // namespace

TEST_CASE("functions are called what their author calls them", "[names][luas]") {
  const Program it;
  const std::string path = std::filesystem::path(it.script).parent_path().string();
  for (const Words& interpreter : interpreters()) {
    INFO(Catch::StringMaker<Words>::convert(interpreter));
    Running running(it.command(interpreter));
    running.read_until("READY");
    const NamedStacks recorded = record_names(running, it.folder, 1000);
    INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
    const auto expect = [&](const std::string& name, const std::string& file, int line) {
      const std::string frame = fmt::format("{} ({}:{})", name, file, line);
      INFO(frame);
      CHECK(recorded.with(frame) > 0);
    };
    const std::string module = path + "/bank.lua", main = it.script;
    expect("Account:interest", module, 7);
    expect("Account:audit", module, 8);
    expect("Account.__add", module, 9);
    expect("Savings:interest", module, 13);
    expect("bank.total", module, 14);
    expect("zoo.Animal:speak", "zoo", 5);
    expect("zoo.Animal.run", "zoo", 6);
    expect("zoo.count", "zoo", 7);
    expect("__mul", "zoo", 10);
    // Any other name replaces this one in a profile, and one sample in some thousands sees a call
    // that has just ended.
    std::int64_t iterators = recorded.with("for iterator (zoo:12)");
    for (int tries = 0; tries < 3 && iterators == 0; ++tries)
      iterators = record_names(running, it.folder, 200).with("for iterator (zoo:12)");
    CHECK(iterators > 0);
    expect("handlers.accounts", main, 9);
    expect("handlers.savings", main, 11);
    expect("routes.index", main, 13);
    expect("pair.one", main, 14);
    expect("pair.two", main, 14);
    expect("protected", main, 16);
    CHECK(recorded.frames_at("inline (").size() == 1);
    // One name for the C functions that gmatch and lines return, however they were called.
    CHECK(recorded.with("string.gmatch iterator [C]") > 0);
    CHECK(recorded.with("io.lines iterator [C]") > 0);
    CHECK(recorded.frames_at("for iterator [C]").empty());
    for (const FoldedStack& stack : recorded.stacks) {
      const auto iterator = std::ranges::find(stack.frames, "string.gmatch iterator [C]");
      const bool reads = iterator != stack.frames.end() &&
                         std::any_of(iterator, stack.frames.end(), [](const auto& each) {
                           return each.starts_with("_IO_") || each.starts_with("read ") || each.starts_with("fclose ");
                         });
      CHECK_FALSE(reads);
    }
    // What was tail called does not have the name of what called it, in any sample.
    for (const int line : {9, 11}) CHECK(recorded.frames_at(fmt::format("program.lua:{})", line)).size() == 1);
    const std::string raw = it.folder.path("raw.luaspy");
    const Finished callers = luaspy({"report", raw, "--function", "Account:audit"});
    CHECK(callers.status == 0);
    CHECK(callers.out.find("Account:audit (") != std::string::npos);
    const Finished only = luaspy({"report", raw, "-f", "folded", "-o", "-", "--only", "^Savings:interest"});
    REQUIRE(only.status == 0);
    const std::vector<FoldedStack> stacks = parse_folded(only.out);
    CHECK_FALSE(stacks.empty());
    for (const FoldedStack& stack : stacks)
      CHECK(std::ranges::any_of(stack.frames, [](const std::string& frame) { return frame.starts_with("Savings:"); }));
  }
}

TEST_CASE("a source file that was changed since the start names nothing", "[names]") {
  const Folder folder;
  const std::string script = folder.write(
      "changed.lua", with_work("local run = {function() WORK end}\nlocal function named() WORK end\n") + say_ready +
                         "local all = {run[1], named} while true do for i = 1, 2 do pcall(all[i]) end end\n");
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* const how : {"not", "replaced", "written"}) {
    INFO(how);
    const bool changed = how != std::string("not");
    Running running(target(luajit).command + Words{script});
    running.read_until("READY");
    if (how == std::string("replaced")) {
      running.await("the new file is younger than the process", [&] {
        std::filesystem::copy_file(script, folder.path("new.lua"));
        std::filesystem::last_write_time(folder.path("new.lua"), long_ago);
        std::filesystem::rename(folder.path("new.lua"), script);
        return SourceFiles(running.pid()).read(script)->changed;
      });
    }
    if (how == std::string("written"))
      std::filesystem::last_write_time(script, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(2));
    const NamedStacks recorded = record_names(running, folder);
    INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
    CHECK(recorded.with("function (" + script + ":1)") > 0);
    CHECK((recorded.with("named (" + script + ":2)") > 0) == !changed);
    CHECK((recorded.with("function (" + script + ":2)") > 0) == changed);
  }
}

// `next` and what ipairs returns lie side by side, and neither holds anything. A sandbox may have
// removed `next`.
TEST_CASE("what ipairs returns has its name, and pairs' `next` never has", "[names][iterators][luas]") {
  const Folder folder;
  const std::string fill = "local t = {} for i = 1, 3000 do t[i] = i end ";
  const std::string with_ipairs = folder.write("ipairs.lua",
                                               fill + say_ready + "while true do for i, v in ipairs(t) do end end\n");
  const std::string without_next = folder.write(
      "pairs.lua", fill + "next = nil " + say_ready + "while true do for k, v in pairs(t) do end end\n");
  for (const Words& interpreter : interpreters()) {
    INFO(Catch::StringMaker<Words>::convert(interpreter));
    {
      Running running(interpreter + Words{with_ipairs});
      running.read_until("READY");
      const NamedStacks recorded = record_names(running, folder, 200);
      INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
      // LuaJIT's has no frame while it runs.
      const bool has_frame = std::ranges::any_of(
          recorded.stacks, [](const FoldedStack& stack) { return stack.frames.back().ends_with(" [C]"); });
      const bool is_luajit = fmt::format("{}", fmt::join(interpreter, " ")).find("luajit") != std::string::npos;
      CHECK((has_frame || is_luajit));
      CHECK(recorded.with("for iterator [C]") == 0);
      if (has_frame) CHECK(recorded.with("ipairs iterator [C]") > 0);
    }
    Running running(interpreter + Words{without_next});
    running.read_until("READY");
    const NamedStacks recorded = record_names(running, folder, 200);
    INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
    CHECK(recorded.frames_at("ipairs iterator") == std::set<std::string>{});
  }
}

// Debian's redis-server is a link to redis-check-rdb.
TEST_CASE("a program has the name that it was started by", "[names]") {
  const Folder folder;
  const std::string file = folder.path("its-file"), link = folder.path("its-name");
  std::filesystem::copy_file(target(lua54).core, file);
  Words before = target(lua54).command;  // env, with where its libraries are
  before.pop_back();
  std::filesystem::create_symlink("its-file", link);
  const std::string script = folder.write("work.lua",
                                          with_work("io.write('READY\\n') io.flush() while true do WORK end"));
  const std::string executable = folder.write("script", "#!" + file + "\n" + read_file(script), 0755);
  struct Row {
    Words command;
    std::string path;
  };
  for (const Row& row :
       std::vector<Row>{{{link, script}, link},
                        {{file, script}, file},
                        {{"/bin/sh", "-c", "cd \"$1\" && exec ./its-name work.lua", "sh", folder.path()},
                         folder.path() + "/./its-name"},
                        {{executable}, file}}) {  // a script's interpreter has its own name
    Running running(before + row.command);
    running.read_until("READY");
    CHECK(program_of(running.pid()) == row.path);
    const std::string name = base_name(row.path), other = name == "its-name" ? "its-file" : "its-name";
    const Finished folded = luaspy(
        {"record", "--pid", std::to_string(running.pid()), "-d", "0.3", "--mode", "all", "-f", "folded", "-o", "-"});
    INFO(folded.out);
    CHECK(folded.out.find(name) != std::string::npos);
    CHECK(folded.out.find(other) == std::string::npos);
    const Finished listed = luaspy({"ps"});
    const std::string line = line_with(listed.out, std::to_string(running.pid()) + " ");
    CHECK(line.find(" " + name + " ") != std::string::npos);
    CHECK(line.find(" " + other + " ") == std::string::npos);
  }
}

TEST_CASE("what a C function does in functions without a name is its own, and shown on demand", "[names][luas]") {
  const Folder folder;
  Running running({compile(folder, "native_work", source_version("5.4"), {"-s"})});
  running.read_until("READY");
  const auto recorded = [&](const Words& options) {
    return luaspy(Words{"record", "--pid", std::to_string(running.pid()), "-d", "0.5", "-f", "folded", "-o", "-"} +
                  options);
  };
  const Finished merged = recorded({}), whole = recorded({"--mode", "all"});
  INFO(merged.out << merged.err << whole.out);
  std::int64_t all = 0, of_work = 0;
  for (const FoldedStack& stack : parse_folded(merged.out)) {
    all += stack.count;
    if (stack.frames.back() == "demo.work [C]") of_work += stack.count;
  }
  CHECK(of_work * 100 > all * 90);
  CHECK(std::regex_search(merged.err, std::regex("\n +[0-9.]+ +[0-9.]+  demo\\.work \\[C\\]\n")));
  CHECK(std::regex_search(whole.out, std::regex("demo\\.work \\[C\\];native_work[0-9.]*\\+0x[0-9a-f]+")));
}

TEST_CASE("a call through LuaJIT's FFI has the name of the C function", "[names]") {
  const Folder folder;
  const std::string script = folder.write(
      "ffi.lua",
      std::string("local ffi = require 'ffi' ffi.cdef('void qsort(void*, size_t, size_t, int (*)(const int*, "
                  "const int*));') local numbers = ffi.new('int[?]', 2000) local compare = ffi.cast('int "
                  "(*)(const int*, const int*)', function(a, b) return a[0] - b[0] end) ") +
          say_ready +
          "while true do for i = 0, 1999 do numbers[i] = i * 7919 % 2003 end ffi.C.qsort(numbers, 2000, 4, "
          "compare) end\n");
  Running running(command_of(target(luajit), Jit::off) + Words{script});
  running.read_until("READY");
  const NamedStacks recorded = record_names(running, folder);
  INFO(fmt::format("{}", fmt::join(recorded.frames(), "\n")));
  CHECK(recorded.with("qsort [C]") > 0);
}

}  // namespace luaspy::live::names_test
