#pragma once
// What `luaspy report` was asked for.

#include <optional>
#include <string>
#include <vector>

#include "base/sample.h"
#include "profile/view_options.h"

namespace luaspy {

struct ReportOptions {
  std::vector<std::string> files;  // raw recordings or pages; "-": standard input. Several are added up
  bool by_file = false;            // a root frame for each
  std::vector<std::string> diff;   // or two: before and after
  std::string output;              // "-" or "": standard output for text; else as RecordOptions::output
  std::string format;              // "": as output ends (.txt: text), else text
  ViewOptions shape;
  bool threads = false;            // folded, svg: a root frame for each thread
  std::string thread;              // its number or a part of its name; "": all
  std::optional<double> from, to;  // s since the start; negative: before the end
  std::string function;            // callers and callees of it
  bool tree = false;
  double least = 1;                 // %: smaller branches of the tree are only counted
  std::string source, source_path;  // a Lua file as the profile names it; where it is on disk
  bool states = false, by_thread = false;
  bool collector = false;                          // what the collector costs, by who allocates
  bool coroutines = false;                         // those that were suspended, instead of what ran
  std::optional<Unit> unit;                        // bytes, objects: the allocations of a recording of time
  bool leak_only = false, human_readable = false;  // of a memprof stream: what was not freed; sizes with units
  int top = 20;                                    // rows
  // samples; time: what they weigh; for differences also run; "": usual_by(). Else the name of a label.
  std::string by;
  bool by_label() const { return !by.empty() && by != "samples" && by != "time" && by != "run"; }
  bool total = false;                    // differences of functions including all that they call
  bool json = false;                     // all that there is, for programs
  std::optional<double> fail_if_slower;  // %: the status is slower_status if a function takes that much more
};

}  // namespace luaspy
