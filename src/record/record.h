#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/view_options.h"
#include "sampling/target_options.h"

namespace luaspy {

class ProcessTree;
class Recording;
struct LoopCounts;
struct LoopOptions;

struct RecordOptions {
  TargetOptions target;
  double rate = 100;                // Hz
  std::optional<double> duration;   // s
  double max_stopped = 10;          // % of the time that a thread may stand still
  bool always_stop = false;         // LoopOptions::always_stop
  std::string output;               // "-": standard output; "": derived from the target's name
  std::string format;               // "": from output's ending, else the first of formats()
  bool traces = false;              // LuaJIT: frames of its machine code
  std::vector<std::string> labels;  // of samples: "coroutine", "request", "trace", "phase", "fiber", "plugin",
                                    // "NAME=EXPR"
  std::optional<double> slower;     // s: only requests that took longer; labels have "request" then
  ViewOptions shape;
  bool threads = false;         // folded, svg: a root frame for each thread
  std::optional<double> every;  // s: how often the file is rewritten; a raw recording is flushed instead
  bool no_source = false;       // the recording carries no text of Lua files
  bool idle = false;            // sample sleeping threads too
  bool kernel = false;          // frames of the kernel
  bool subprocesses = false;    // the target's descendants that run Lua, too; then shape.processes is set
  bool allocations = false;     // sample who allocates, too
  bool marks_compiler = false;  // what LuaJIT's compiler decides, as marks
  bool coroutines = false;      // also look at those that are suspended
  double coroutine_rate = 1;    // Hz
  bool opens = false;           // the file is shown in the browser at the end
  bool end_command = false;     // a launched command is asked to end when the recording does
  double max_cost = 3;          // % of the program's time that this may take
};

// What else is recorded, by another part of luaspy.
struct Alongside {
  // In place of run_loop(). An Error: there will be no file.
  std::function<Result<void>(ProcessTree&, const LoopOptions&, Recording&, LoopCounts&)> run;
  // What there is to say of it at the end.
  std::function<std::string(const Recording&)> text;
};

// Samples the target until it ends, the duration is over, or a signal asks luaspy to end. Writes
// the profile, and a summary to standard error. Returns the exit status: 0, or that of a launched
// command.
Result<int> record(const RecordOptions& options, const Alongside* alongside = nullptr);

}  // namespace luaspy
