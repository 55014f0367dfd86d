#pragma once
// What of a recording is shown: which samples, and which of their frames (stack_view.h).

#include <string>
#include <vector>

#include "base/mode.h"

namespace luaspy {

struct ViewOptions {
  Mode mode = Mode::merged;  // frames that it does not show are left out
  bool lines = false;        // frames keep the line being executed; else stacks differ by function only
  bool whole = false;        // stacks keep all frames and lines, for a format that leaves the choice to its reader
  bool cpus = false;         // samples keep the CPU that their thread had
  bool tracks = false;       // Profile::tracks, for a format that shows when coroutines waited
  bool gc = false;           // an innermost frame for garbage collection
  bool vmstate = false;      // a root frame for the state of the VM
  bool processes = false;    // a root frame for each process
  bool sleepers = true;      // also threads that were only seen asleep, beside others that ran
  std::string only, ignore;  // regular expressions (base/pattern.h), searched in the describe() texts of frames, with
                             // their lines; "": none
  std::vector<std::string> labels;  // NAME=PATTERN: only samples with such a label, each of these
};

}  // namespace luaspy
