#pragma once

#include <optional>

#include "base/mode.h"
#include "base/result.h"
#include "sampling/target_options.h"

namespace luaspy {

struct TopOptions {
  TargetOptions target;
  double rate = 100;               // Hz
  std::optional<double> duration;  // s
  double max_stopped = 10;         // % of the time that a thread may stand still
  bool always_stop = false;        // LoopOptions::always_stop
  Mode mode = Mode::merged;
  bool idle = false;               // sample sleeping threads too
  bool kernel = false;             // frames of the kernel
  bool subprocesses = false;       // the target's descendants that run Lua, too
  bool batch = false;              // plain tables instead of a screen
  std::optional<double> interval;  // s, between two tables or refreshes
  std::optional<int> count;        // tables
};

// Shows which functions take the time, live or as a series of plain tables. Returns the exit
// status.
Result<int> top(const TopOptions& options);

}  // namespace luaspy
