#pragma once
// luaspy jit: what LuaJIT compiles of a program and what it does not, why, and how much of the time that costs. Samples
// say where the time goes, as those of record; the compiler's decisions are read without a stop.

#include <optional>

#include "base/result.h"
#include "sampling/target_options.h"

namespace luaspy {

struct JitOptions {
  TargetOptions target;
  double rate = 100;               // Hz
  std::optional<double> duration;  // s
  double max_stopped = 10;         // % of the time that a thread may stand still
  bool always_stop = false;        // LoopOptions::always_stop
  bool subprocesses = false;
  bool end_command = false;  // a launched command is asked to end when this does
  bool json = false;
  bool watch = false;  // print each decision as it is seen, in place of the report
  int rows = 10;       // of a table
};

// Returns the exit status: 0, or that of a launched command.
Result<int> jit(const JitOptions& options);

}  // namespace luaspy
