#pragma once
// luaspy alloc: who allocates.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sample.h"
#include "profile/view_options.h"
#include "sampling/target_options.h"

namespace luaspy {

struct AllocOptions {
  TargetOptions target;
  std::optional<double> duration;  // s
  double max_cost = 3;             // % of the program's time
  std::string output;              // "": none is written
  std::string format;
  Unit unit = Unit::bytes;  // of the file
  ViewOptions shape;
  bool live = false;          // also what is still in use at the end; the file has only that
  bool threads = false;       // folded, svg: a root frame for each thread
  bool types = false;         // an innermost frame for what is allocated
  bool internals = false;     // places in the Lua core are shown (fold_internals())
  bool end_command = false;   // a launched command is asked to end when the recording does
  bool subprocesses = false;  // the target's descendants that run Lua, too
};

// The formats that only alloc writes, or writes in a way of its own.
std::vector<std::string_view> alloc_format_names();

// Samples allocations until the target ends, the duration is over, or a signal asks luaspy to end.
// Prints who allocates, and writes a profile if there is an output. Returns the exit status: 0, or
// that of a launched command.
Result<int> alloc(const AllocOptions& options);

}  // namespace luaspy
