#include "allocations/counting_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "attach/live_memory.h"

namespace luaspy::allocations {

using tests::Child;
using tests::Words;

std::vector<Source> sources() {
  std::map<std::string, Source> newest;
  for (const bool is_luajit : {false, true}) {
    std::ifstream table(std::string(LUASPY_TARGETS) + (is_luajit ? "/luajit-sources.tsv" : "/sources.tsv"));
    for (std::string line; std::getline(table, line);) {
      Source source;
      std::istringstream fields(line);
      std::string gc64;
      std::getline(fields, source.version, '\t');
      std::getline(fields, source.folder, '\t');
      std::getline(fields, source.library, '\t');
      std::getline(fields, gc64, '\t');
      source.is_luajit = is_luajit;
      if (is_luajit && (gc64 != "yes" || source.version != "2.1.newest")) continue;
      Source& kept = newest[source.version.substr(0, 3)];
      if (kept.version < source.version) kept = source;  // a digit each
    }
  }
  std::vector<Source> all;
  for (const auto& [version, source] : newest) all.push_back(source);
  std::ranges::stable_partition(all, [](const Source& source) { return !source.is_luajit; });
  if (all.empty()) tests::give_up("no Luas in " LUASPY_TARGETS ": run tests/targets/prepare.sh first");
  return all;
}

void compile(const Source& source, const std::string& program) {
  Child compiler({"gcc", "-std=gnu11", "-g", "-O2", "-o", program, LUASPY_TESTS "/live/programs/allocations.c",
                  "-I" + source.folder, "-I" + source.folder + "/src", source.library, "-lm", "-ldl"},
                 {.errors = "/dev/stderr"});
  if (compiler.wait(60) != 0) tests::give_up("allocations.c cannot be compiled with Lua " + source.version);
}

AllocationTruth Program::truth() const {
  return LiveMemory(child_.pid()).get<AllocationTruth>(truth_).value_or(AllocationTruth());
}

std::array<int, 2> Program::new_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) tests::give_up("no pipe");
  return ends;
}

Program::Program(const Words& command, std::array<int, 2> ends)
    : child_(command, {.errors = "/dev/stderr", .output_fd = ends[1]}) {
  ::close(ends[1]);
  std::string said;
  for (char c = 0; said.find("READY\n") == std::string::npos;) {
    const ssize_t count = ::read(ends[0], &c, 1);
    if (count == 0) break;
    if (count == 1) said += c;  // otherwise an alarm of watch_signals() has come
  }
  ::close(ends[0]);
  if (!said.ends_with("READY\n")) tests::give_up(command.front() + " has not begun");
  truth_ = std::strtoull(said.c_str(), nullptr, 16);
}

}  // namespace luaspy::allocations
