#pragma once
// One look at all threads of a process (process_look.h) and, if requested, at variables and all
// coroutines.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attach/cpu_wait.h"
#include "attach/source_lines.h"
#include "attach/waits/waiting.h"
#include "base/mode.h"
#include "dump/process_look.h"
#include "heap/coroutines.h"
#include "luastate/variables.h"
#include "sampling/session.h"
#include "system/calls.h"

namespace luaspy {

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
