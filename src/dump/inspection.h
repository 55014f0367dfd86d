#pragma once
// What dump shows for a process: one look at all its threads and, if requested, at variables and
// all coroutines. Plain data, from which text and JSON are made (dump_text.h, dump_json.h).

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attach/core_file.h"
#include "attach/cpu_wait.h"
#include "attach/source_lines.h"
#include "attach/waits/waiting.h"
#include "base/mode.h"
#include "dump/compiler_look.h"
#include "heap/coroutines.h"
#include "luastate/variables.h"
#include "sampling/session.h"
#include "system/calls.h"

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
  Thread::Times times{};             // since it began
  std::optional<CpuWait> cpu_wait;   // it wants to run, but has no CPU for part of the time
};

// What is shown about a core file in addition to its threads.
struct CoreFacts {
  std::string path;
  std::string end;                  // "signal 11 (Segmentation fault) at 0x0"; empty: the process was alive
  std::uint64_t missing_bytes = 0;  // of its memory, because the file was cut off
  std::vector<CoreFile::MissingFile> missing_files;
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

struct InspectOptions {
  bool locals = false;
  ValueLimits values{};
  bool coroutines = false;
  bool compilers = false;    // what LuaJIT's compiler has decided
  Mode mode = Mode::merged;  // which frames are kept
};
CoroutineLimits coroutine_limits(const InspectOptions& options);

// The following functions serve both live processes (Inspector) and core files (core_look.h).
// Variables of each frame of a look of `reader`. `room`: for all threads of one standstill.
std::vector<FrameDetail> read_variables(StackReader& reader, const StackReader::Finished& look,
                                        const ValueLimits& limits, CountingRoom& room);
// The functions of LuaJIT that the frames of a look are in, as its stack.
std::vector<FunctionOfFrame> functions_of(const StackReader::Finished& look);
// Says which functions the frames of a thread are in. `functions`: as its stack, or shorter.
void add_functions(const std::vector<FunctionOfFrame>& functions, ThreadLook& thread);
// Adds what the compilers of all LuaJITs that were seen have decided.
void read_compilers(const Memory& memory, StackReader& reader, ProcessLook& look);
// What the compiler has decided about the function of a frame of `look`; nullptr: not known.
const CompilerFunction* function_in(const ProcessLook& look, const FrameDetail& detail);
// Adds the state of the collector of each Lua that was seen to look.states.
void read_collectors(const Memory& memory, StackReader& reader, ProcessLook& look);
// Call when all threads and their waits have been added: leaves out frames that are not to be shown,
// and adds source lines, deadlocks and the Luas.
void complete(ProcessLook& look, Mode mode, SourceLines& sources, const StackReader& reader);

class Inspector {
 public:
  // `session` must outlive this object, and must also sample sleeping threads.
  Inspector(Session& session, const InspectOptions& options)
      : session_(session), options_(options), sources_(SourceFiles(session.target().process().pid())) {}

  ProcessLook look();
  // Starts to watch the threads that `look` found running. Call it soon after look().
  std::vector<std::pair<pid_t, CpuWatch>> watch_running(const ProcessLook& look);

 private:
  std::optional<Sample> look_at(Thread& thread);
  void add_compilers(ProcessLook& look);
  void look_in_standstill(ProcessLook& look);
  void find_coroutines(Coroutines& coroutines);
  bool try_standstill(ProcessLook& look, Coroutines& coroutines, int tried);
  void name_stacks(ProcessLook& look);
  bool finds_in_standstill(const Standstill& standstill, int tried) const;
  void add_waits(ProcessLook& look);

  Session& session_;
  InspectOptions options_;
  SourceLines sources_;
  std::map<int, Sample> last_;  // by tid: the sampler does not repeat the stack of a thread that stays asleep
  std::map<int, std::vector<FunctionOfFrame>> functions_;  // by tid: of the last look that has found frames
  std::map<Address, std::set<Address>> hooked_;  // by global_State: states that were seen running with a debug hook
  std::optional<system::Clock::time_point> first_;
  bool exact_ = true;                            // the last try read all coroutines in its standstill
  std::map<int, StackReader::Unnamed> unnamed_;  // by tid: looks of the last try, whose frames are named after it has
                                                 // ended
};

}  // namespace luaspy
