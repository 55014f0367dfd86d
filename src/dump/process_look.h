#pragma once
// What dump shows of a process: one look at all its threads, as values. inspection.h and core_look.h make them,
// dump_text.h and dump_json.h print them.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attach/waits/wait.h"
#include "base/frame.h"
#include "base/sample.h"
#include "base/source_texts.h"
#include "dump/compiler_look.h"
#include "heap/state_report.h"
#include "luastate/reported.h"

namespace luaspy {

// What is known about a frame in addition to Frame.
struct FrameDetail {
  std::optional<SourceLine> source;        // Lua: of the current line
  std::optional<CallVariables> variables;  // of a Lua function, or of a C function that Lua called
  FunctionOfFrame function;                // with InspectOptions::compilers
};

struct ThreadLook {
  int tid = 0;
  std::string name;
  Sample sample;
  Stack stack;                       // the frames of sample.stack
  std::vector<FrameDetail> details;  // as stack, or shorter
  std::optional<Wait> wait;          // what it sleeps in
  struct Times {
    std::int64_t on_cpu = 0, waited_for_cpu = 0;  // ns
  } times;                                        // since it began
  std::optional<CpuWait> cpu_wait;                // it wants to run, but has no CPU for part of the time
};

// What is shown about a core file in addition to its threads.
struct CoreFacts {
  std::string path;
  std::string end;                  // "signal 11 (Segmentation fault) at 0x0"; empty: the process was alive
  std::uint64_t missing_bytes = 0;  // of its memory, because the file was cut off
  struct MissingFile {
    std::string path;
    bool differs = false;  // the file that is there now is a different one
  };
  std::vector<MissingFile> missing_files;
};

struct ProcessLook {
  int pid = 0;
  std::string command;
  std::vector<LuaImage> images;
  std::vector<std::string> layouts;  // Luas whose states were seen
  double time = 0;                   // s since the first look
  std::vector<ThreadLook> threads;
  std::vector<std::vector<pid_t>> deadlocks;  // threads that wait for each other's mutexes, in rings
  // Source lines of the frames of coroutines, by file and line.
  std::map<std::pair<std::string, int>, SourceLine> sources;
  std::vector<StateReport> states;            // one per global state; without coroutines if they were not requested
  std::map<Address, CompilerLook> compilers;  // of LuaJIT, by global_State; with InspectOptions::compilers
  // For a look at variables or coroutines, which stops all running threads at the same time:
  std::int64_t stood_still_ns = 0;  // 0: none had to be stopped
  bool disturbed = false;           // a sleeping thread woke during every attempt: what was read may not fit together
  std::optional<CoreFacts> core;    // only for a core file
};

// What the compiler has decided about the function of a frame of `look`; nullptr: not known.
inline const CompilerFunction* function_in(const ProcessLook& look, const FrameDetail& detail) {
  const auto compiler = look.compilers.find(detail.function.G);
  if (compiler == look.compilers.end()) return nullptr;
  const auto function = compiler->second.functions.find(detail.function.prototype);
  return function != compiler->second.functions.end() ? &function->second : nullptr;
}

}  // namespace luaspy
