#pragma once

#include <string>

#include "base/mode.h"
#include "base/result.h"
#include "sampling/target_options.h"

namespace luaspy {

struct DumpOptions {
  TargetOptions target;
  std::string core;        // a core file instead of a target
  std::string executable;  // where its program is now; "": where it was
  std::string root;        // where its other files are; "": /
  Mode mode = Mode::merged;
  bool traces = false;  // LuaJIT: frames of its machine code
  bool json = false;
  bool subprocesses = false;
  bool locals = false;
  bool verbose = false;  // longer values
  bool coroutines = false;
  int count = 1;        // looks
  double interval = 1;  // s between two of them; threads without a CPU are watched no longer
};

// Prints the stack of every thread, innermost frame first. Returns the exit status.
Result<int> dump(const DumpOptions& options);

}  // namespace luaspy
