#pragma once
// ONE TICK. Which threads to look at, the stop, what is read in it, and what becomes of that once the thread runs again.
// This is the page to read first; everything else is a detail of one of its lines.

#include <map>
#include <memory>
#include <optional>

#include "attach/snapshot.h"
#include "attach/target.h"
#include "core.h"
#include "luastate/live_pc.h"
#include "luastate/locate.h"
#include "luastate/names.h"
#include "sample.h"

namespace luaspy {

struct SamplerOptions {
  Mode mode = Mode::merged;
  bool idle = false;                // sample sleeping threads too
  WalkLimits limits;
};

class Sampler {
 public:
  Sampler(Target& target, SamplerOptions options);

  // One look at one thread. nullopt: it sleeps and sleeping threads were not asked for, or it has ended.
  // A running thread is stopped, a sleeping one is read as it is: interrupting it would end its system call.
  std::optional<Sample> sample(Thread& thread);

  // Reads the target's mappings again and looks for Lua in what is new. sample() asks for it by itself when it meets
  // addresses that no mapping explains.
  void refresh();
  // Call between ticks: does what sample() asked for.
  void settle();

  const std::vector<LuaImage>& images() const { return detector_.images(); }
  std::vector<std::string> searched() const { return detector_.searched(); }
  bool saw_state() const { return !locator_.global_states().empty(); }
  const std::vector<std::string>& execute_functions() const { return native_.execute_functions(); }
  // The rows in use, by the states seen.
  std::vector<std::string> rows() const;

 private:
  struct LuaState {
    Activation activation;
    LuaWalk walk;
  };
  struct PerThread {
    std::vector<Address> predicted;   // pages that the last look needed
    std::string run_count;            // of a sleeping thread, when it was read
    std::optional<Sample> asleep;     // what was read then: still true while the count is the same
  };

  std::optional<Sample> look_at_running(Thread& thread, PerThread& memo);
  std::optional<Sample> look_at_sleeping(Thread& thread, const ThreadState& state, PerThread& memo);
  bool read(const Registers& registers, PerThread& memo);
  void finish(const Registers& registers, Sample& sample);
  void learn_pcs(const Merged& merged);
  Address live_pc(const Merged& merged, std::size_t position);
  Stack label(const Merged& merged);
  std::size_t stack_size(Address sp) const;

  Target& target_;
  SamplerOptions options_;
  AddressSpace space_;
  Detector detector_;
  Locator locator_;
  Modules modules_;
  Unwinder unwinder_;
  NativeCode native_;
  LivePc live_pc_;
  Names names_;
  Snapshot snapshot_;
  std::map<pid_t, PerThread> threads_;
  bool stale_ = false;
  int settles_to_skip_ = 0, refreshes_in_vain_ = 0;

  // Of the sample being made; they keep their room from one to the next.
  std::vector<Activation> active_;
  std::vector<LuaState> states_;
  std::size_t state_count_ = 0;
  std::vector<NativeFrame> natives_;
};

}  // namespace luaspy
