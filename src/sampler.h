#pragma once
// ONE TICK. Which threads to look at, the stop, what is read in it, and what becomes of that once the thread runs again.
// This is the page to read first; everything else is a detail of one of its lines.

#include <map>
#include <memory>
#include <optional>

#include "attach/snapshot.h"
#include "attach/target.h"
#include "lua_reader.h"
#include "native_code.h"

namespace luaspy {

struct SamplerOptions {
  Mode mode = Mode::merged;
  bool idle = false;                // sample sleeping threads too
  WalkLimits limits;
  std::chrono::milliseconds patience{50};  // how long a thread may take to stop
};

class Sampler {
 public:
  Sampler(Target& target, SamplerOptions options);

  // One look at one thread. nullopt: it sleeps, and sleeping threads were not asked for.
  // A running thread is stopped, a sleeping one is read as it is: interrupting it would end its system call.
  std::optional<Sample> sample(Thread& thread);

  // Reads the target's mappings again and looks for Lua in what is new. sample() asks for it by itself when it meets
  // addresses that no mapping explains.
  void refresh();
  // Call between ticks: does what sample() asked for.
  void settle();

  const std::vector<LuaImage>& images() const { return detector_.images(); }
  std::vector<std::string> searched() const { return detector_.searched(); }
  // Is there a lua_State in the target, on a thread's stack or anywhere in its memory?
  bool has_state() const { return lua_.saw_state() || lua_.finds_state(space_); }
  const std::vector<std::string>& execute_functions() const { return native_.execute_functions(); }
  std::vector<std::string> rows() const { return lua_.rows(); }

 private:
  struct PerThread {
    std::vector<Address> predicted;   // pages that the last look needed
    std::string run_count;            // of a sleeping thread, when it was read
    std::optional<Sample> asleep;     // what was read then: still true while the count is the same
  };

  std::optional<Sample> look_at_running(Thread& thread, PerThread& memo);
  std::optional<Sample> look_at_sleeping(Thread& thread, const ThreadState& state, PerThread& memo);
  bool read(const Registers& registers, PerThread& memo);
  void finish(const Registers& registers, Sample& sample);
  std::size_t stack_size(Address sp) const;

  Target& target_;
  SamplerOptions options_;
  AddressSpace space_;
  Detector detector_;
  Modules modules_;
  Unwinder unwinder_;
  NativeCode native_;
  LuaReader lua_;
  Snapshot snapshot_;
  std::map<pid_t, PerThread> threads_;
  bool stale_ = false;
  int settles_to_skip_ = 0, refreshes_in_vain_ = 0;

  std::vector<NativeFrame> natives_;   // of the sample being made; keeps its room
};

}  // namespace luaspy
