// What stripped interpreters' functions are recognised as, compared with the symbols that the same
// programs have before they are stripped.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "attach/target.h"
#include "stack/target_map.h"
#include "support/harness.h"
#include "unwind/symbol_table.h"

namespace luaspy::live::vm_functions_test {
namespace {

struct Recognised {
  std::size_t count = 0;
  std::vector<std::string> wrong;  // "luaH_get is luaH_getint"
  bool has_symbols = false;        // the program says itself what its functions are
};

// "luaV_equalobj_" and "internshrstr.isra.0" are named without what follows the name.
bool is_name_of(std::string_view name, std::string_view symbol) {
  symbol = symbol.substr(0, symbol.find('.'));
  return symbol == name || (symbol.ends_with('_') && symbol.substr(0, symbol.size() - 1) == name);
}

// `with_symbols`: the same program before it was stripped.
Recognised recognise(const Running& running, const std::string& with_symbols, KnownFiles& known) {
  Result<Process> process = Process::open(running.pid());
  REQUIRE(process);
  Target target(std::move(*process), std::chrono::seconds(2));
  TargetMap map(target.process(), target.memory(), known);
  map.update(map.look());
  map.find_luas();
  map.find_functions();
  REQUIRE(map.functions().vm_images().size() == 1);
  const NativeCode::VmImage& core = map.functions().vm_images().front();
  const Module& module = *map.modules().find(core.start);
  const int file = ::open(with_symbols.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  const SymbolTable symbols(file, with_symbols, module.bias());
  Recognised result;
  result.count = core.recognised.size();
  for (const auto& [function, name] : core.recognised) {
    const std::optional<Symbol> symbol = symbols.find(function);
    if (!symbol || symbol->start != function || !is_name_of(name, symbol->name))
      result.wrong.push_back(fmt::format("{} is {}", name, symbol ? symbol->name : "?"));
  }
  if (core.executes.empty()) return result;  // LuaJIT
  NativeFrame execute;
  execute.lookup = execute.function = core.executes.front().start;
  result.has_symbols = map.functions().describe(execute).name == "luaV_execute";
  ::close(file);
  return result;
}

// Strips a program that is linked with Lua, and compares what is recognised in it.
// A second process of it has it elsewhere, and is told what was found in the first one's.
Recognised of_program(const Folder& folder, const std::string& program) {
  const std::string stripped = folder.path("stripped");
  REQUIRE(run({"strip", "-o", stripped, program}).status == 0);
  Running running({stripped, "turns"}), second({stripped, "turns"});
  running.read_until("READY");
  second.read_until("READY");
  KnownFiles known;
  const Recognised first = recognise(running, program, known);
  REQUIRE(known.vm_images.size() == 1);
  const Recognised moved = recognise(second, program, known);
  CHECK(moved.count == first.count);
  CHECK(moved.has_symbols == first.has_symbols);
  return moved;
}

}  // namespace

// The libraries are built as Lua's makefile does it, so their functions are where they belong.
TEST_CASE("functions of stripped interpreters get the names that they have",
          "[identity][identity_symbols][all][luas]") {
  for (const TargetSpec& source : sources()) {
    if (!source.name.starts_with("5.")) continue;  // LuaJIT
    INFO(source.name);
    const Folder folder;
    const std::string program = compile(folder, "unprotected", source.name, {"-Wl,-E"});
    const Recognised recognised = of_program(folder, program);
    CHECK(recognised.wrong == std::vector<std::string>{});
    CHECK(recognised.count >= 30);
    Running whole({program, "turns"});
    whole.read_until("READY");
    KnownFiles known;
    const Recognised unneeded = recognise(whole, program, known);
    CHECK(unneeded.has_symbols);
    CHECK(unneeded.count == 0);
  }
}

// What is "lj_gc" is one of the collector's static functions: the symbol says that, too.
TEST_CASE("functions of a stripped LuaJIT get the names that they have", "[identity][identity_symbols][all][luas]") {
  std::size_t builds = 0;
  for (const TargetSpec& source : sources()) {
    if (source.name.starts_with("5.")) continue;
    INFO(source.name);
    const Folder folder;
    Recognised recognised = of_program(folder, compile(folder, "unprotected", source.name, {"-Wl,-E"}));
    std::erase_if(recognised.wrong, [](const std::string& each) {
      return each.starts_with("lj_gc is ") &&
             (each.find(" gc_") != each.npos || each.find(" propagatemark") != each.npos ||
              each.find(" lj_gc_") != each.npos || each.find("_free") != each.npos ||
              each.find("_shrink") != each.npos || each.find("_resize") != each.npos ||
              each.find("_rehash") != each.npos);
    });
    CHECK(recognised.wrong == std::vector<std::string>{});
    builds += recognised.count >= 25;
  }
  CHECK(builds >= 4);
  // Debian's is compiled as one file.
  Running debian(command_of(target(luajit), Jit::on) + Words{"-e", "print('READY') io.flush() io.read()"});
  debian.read_until("READY");
  KnownFiles known;
  CHECK(recognise(debian, target(luajit).core, known).count == 0);
}

TEST_CASE("so they do however they were optimised, or they get none", "[identity][identity_symbols][all][luas]") {
  struct Build {
    std::string version;
    Words options;
    std::size_t least;  // names
  };
  const Build build = GENERATE(Build{"5.1", {"-O3"}, 25}, Build{"5.4.", {"-O1"}, 30}, Build{"5.1", {"-O2", "-flto"}, 0},
                               Build{"5.4.", {"-O2", "-flto"}, 0});
  const std::string version = source_version(build.version);
  const auto source = std::ranges::find(sources(), version, &TargetSpec::name);
  const std::string folder_of_source = std::filesystem::exists(source->version + "/lapi.c") ? source->version
                                                                                            : source->version + "/src";
  const Folder folder;
  const std::string program = folder.path("program");
  Words command = Words{"gcc",
                        "-w",
                        "-std=gnu11",
                        "-DLUA",
                        "-I" + folder_of_source,
                        "-o",
                        program,
                        LUASPY_TESTS "/live/programs/unprotected.c"} +
                  build.options;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of_source)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('l') && name.ends_with(".c") && name != "lua.c" && name != "luac.c")
      command.push_back(entry.path().string());
  }
  INFO(version << " " << build.options.back());
  const Finished made = run(command + Words{"-Wl,-E", "-lm", "-ldl"});
  INFO(made.err);
  REQUIRE(made.status == 0);
  const Recognised recognised = of_program(folder, program);
  CHECK(recognised.wrong == std::vector<std::string>{});
  CHECK(recognised.count >= build.least);
}

TEST_CASE("recognised functions are marked", "[identity][identity_symbols]") {
  Running running(lua({workload("spin.lua"), "coroutine"}));
  running.read_until("READY");
  const Finished all = luaspy(
      {"record", "--mode", "all", "-d", "1", "-f", "folded", "-o", "-", "--pid", std::to_string(running.pid())});
  INFO(all.err << all.out);
  CHECK(all.out.find(";~luaV_execute (lua5.4);") != std::string::npos);
  // A page has all frames; the table that is printed shows what the mode shows.
  const Folder folder;
  const Finished page = luaspy(
      {"record", "-d", "1", "-o", folder.path("page.html"), "--pid", std::to_string(running.pid())});
  INFO(page.err);
  CHECK(read_file(folder.path("page.html")).find("~luaV_execute") != std::string::npos);
  CHECK(page.err.find("leaf (") != std::string::npos);
  CHECK(page.err.find("~lua") == std::string::npos);
}

}  // namespace luaspy::live::vm_functions_test
