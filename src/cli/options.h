#pragma once
// The command line, as plain structs.

#include <optional>
#include <string>
#include <vector>

#include "stack/merge.h"
#include "base/result.h"
#include "profile/shape.h"
#include "cli/usage.h"

namespace luaspy {

struct TargetOptions {
  int pid = 0;                          // 0: launch `command`, unless one of the next two is set
  bool any = false;                     // --pid auto: the only process that runs Lua
  std::string name;                     // --name
  std::vector<std::string> command;
};

struct RecordOptions {
  TargetOptions target;
  double rate = 100;                    // Hz
  std::optional<double> duration;       // s
  double max_stopped = 10;              // % of the time that a thread may stand still
  bool always_stop = false;             // LoopOptions::always_stop
  std::string output;                   // "-": standard output; "": made of the target's name
  std::string format;                   // "": from output's ending, else the first of formats()
  Mode mode = Mode::merged;
  bool traces = false;     // LuaJIT: frames of its machine code
  Shape shape;
  bool threads = false;                 // folded: a root frame for each thread
  std::optional<double> every;          // s: the file is written anew so often; raw: flushed
  bool idle = false;                    // sample sleeping threads too
  bool subprocesses = false;            // the target's descendants that run Lua, too; then shape.processes is set
};

struct DumpOptions {
  TargetOptions target;
  std::string core;        // a core file instead of a target
  std::string executable;  // where its program is now; "": where it was
  std::string root;        // where its other files are; "": /
  Mode mode = Mode::merged;
  bool traces = false;     // LuaJIT: frames of its machine code
  bool json = false;
  bool subprocesses = false;
  bool locals = false;
  bool verbose = false;    // longer values
  bool coroutines = false;
  int count = 1;           // looks
  double interval = 1;     // s between two of them
};

struct DoctorOptions {
  TargetOptions target;
  std::string output;                   // "" or "-": standard output
  std::string save;                     // a file for a saved stop of a thread; "": none
};

struct PsOptions {
  bool json = false;
  bool states = false;                  // search the processes' memory for states
};

struct TopOptions {
  TargetOptions target;
  double rate = 100;                    // Hz
  std::optional<double> duration;       // s
  double max_stopped = 10;              // % of the time that a thread may stand still
  bool always_stop = false;             // LoopOptions::always_stop
  Mode mode = Mode::merged;
  bool idle = false;                    // sample sleeping threads too
  bool subprocesses = false;            // the target's descendants that run Lua, too
  bool batch = false;                   // plain tables instead of a screen
  std::optional<double> interval;       // s, between two tables or refreshes
  std::optional<int> count;             // tables
};

struct ReportOptions {
  std::string file;                     // a raw recording
  std::vector<std::string> diff;        // or two: before and after
  std::string output;                   // "-" or "": standard output for text; else as RecordOptions::output
  std::string format;                   // "": from output's ending, else text
  Shape shape;
  bool threads = false;                 // folded: a root frame for each thread
  std::string thread;                   // its number or a part of its name; "": all
  std::optional<double> from, to;       // s since the start; negative: before the end
  std::string function;                 // callers and callees of it
  bool tree = false;
  double least = 1;                     // %: smaller branches of the tree are summed up
  std::string source, source_path;      // a Lua file as the profile names it; where it is on disk
  bool states = false, by_thread = false;
  int top = 20;                         // rows
  std::string by = "samples";           // or time; for differences also run
  bool total = false;                   // differences of functions with all that they call
};

struct CompletionOptions {
  Shell shell = Shell::bash;
};

struct Options {
  enum class Command { record, report, top, dump, ps, doctor, completion, manual } command = Command::record;
  RecordOptions record;
  ReportOptions report;
  TopOptions top;
  DumpOptions dump;
  PsOptions ps;
  DoctorOptions doctor;
  CompletionOptions completion;
};

// nullopt with `exit_code` set when there is nothing more to do (help, version, wrong usage: printed already).
std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace luaspy
