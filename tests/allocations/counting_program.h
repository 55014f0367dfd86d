#pragma once
// Programs with an allocation function of their own that counts (live/programs/allocations.c), for what is
// tested on luaspy alloc within the test's own process.

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "support/allocation_truth.h"
#include "support/child.h"

namespace luaspy::allocations {

// A Lua's folder and static library (tests/targets/prepare.sh).
struct Source {
  std::string version, folder, library;
  bool is_luajit = false;
};

// The newest of each version. Ends the test if there are none.
std::vector<Source> sources();
void compile(const Source& source, const std::string& program);

// The program, when it has said that it is ready.
class Program {
 public:
  explicit Program(const tests::Words& command) : Program(command, new_pipe()) {}
  pid_t pid() const { return child_.pid(); }
  bool is_alive() const { return child_.alive(); }
  AllocationTruth truth() const;

 private:
  static std::array<int, 2> new_pipe();
  Program(const tests::Words& command, std::array<int, 2> ends);

  tests::Child child_;
  Address truth_ = 0;
};

}  // namespace luaspy::allocations
