#pragma once
// luaspy heap: what holds the memory.

#include <string>
#include <vector>

#include "base/result.h"
#include "heapreport/heap_questions.h"
#include "sampling/target_options.h"

namespace luaspy {

struct HeapOptions {
  TargetOptions target;
  bool subprocesses = false;       // also what it has started
  std::string core;                // a core file instead of a target
  std::string executable;          // where its program is now; "": where it was
  std::string root;                // where its other files are; "": /
  std::vector<std::string> files;  // snapshots instead of a target: one, or with `diff` two
  bool diff = false;
  double every = 0;    // s between two snapshots of a live target; 0: one
  int count = 2;       // of them
  std::string output;  // a file to write beside the report; "": none
  std::string format;  // of it (heap_output.h); "": as its name ends
  HeapQuestions questions;
  double max_still = 1000;  // ms that a process may stand still
  bool json = false;
  bool rss = false;  // where the process's resident memory is, too
  int lines = 10;    // of each table
};

// Prints what the heap says. Returns the exit status.
Result<int> heap(const HeapOptions& options);

}  // namespace luaspy
