#pragma once
// The compilers of all LuaJITs of the sampled processes, watched while these are sampled (jitwatch/). All functions are
// called by the thread that runs the sampling loop.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "jitwatch/jit_words.h"
#include "jitwatch/watch_thread.h"

namespace luaspy {

class ProcessTree;

class WatchedCompilers {
 public:
  // `tree` must outlive it.
  WatchedCompilers(ProcessTree& tree, WatchThread::Surveys surveys) : tree_(tree), watch_(surveys) {}

  // Looks for Luas that are not watched yet. Those that CPU samplers are just adding are found at the next call.
  void find();
  // The same, not more often than 20 times a second, which is often enough.
  bool find_now_and_then();
  // What is decided is seen from now on. Once.
  void begin() { watch_.begin(); }
  // Ends, after one more look at everything if the targets live.
  void stop() { watch_.stop(); }

  using See = std::function<void(const JitSeen& seen, const JitEvent& event)>;
  // Passes on the events that are new, in the order of time. Nothing if a look is under way: they are new at the next
  // call, too.
  void see_new(const See& see);
  // The same after stop().
  void see_last(const See& see);
  // After stop().
  std::vector<JitSeen> all();

  system::Clock::time_point start() const { return watch_.start(); }  // JitEvent::at_ns counts from here
  bool has_luajit() const { return has_luajit_; }
  bool has_others() const { return has_others_; }  // Luas without a compiler
  bool left_some_out() const { return watch_.left_some_out(); }

 private:
  void see(const WatchThread::Watchers& watchers, const See& see);
  JitSeen seen_of(const JitWatcher& watcher) const;
  void want_functions(JitWatcher& watcher) const;
  void name_functions(const JitKnowledge& knowledge);
  void name_function(const JitKnowledge& knowledge, Address closure);

  ProcessTree& tree_;
  WatchThread watch_;
  system::Clock::time_point next_{};
  std::map<std::pair<pid_t, Address>, std::string> names_;  // of C functions
  std::map<const JitKnowledge*, std::size_t> passed_on_;    // how many events
  std::set<std::uint64_t> searched_;                        // programs
  bool has_luajit_ = false, has_others_ = false;
};

}  // namespace luaspy
