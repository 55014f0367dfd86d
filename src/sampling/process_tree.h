#pragma once
// What a command looks at: the target, and with --subprocesses, or if luaspy has started it, also its
// descendants that run Lua, tracked as they appear and end. Or all processes of a host that run Lua: the descendants of
// its process 1, without a target.

#include <cassert>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "attach/births.h"
#include "sampling/cpu_clock.h"
#include "sampling/session.h"
#include "system/calls.h"

namespace luaspy {

class ProcessTree {
 public:
  // The target itself need not have Lua if luaspy has started it, or if another process of the
  // tree has one.
  static Result<ProcessTree> open(const TargetOptions& options, const SamplerOptions& sampler, bool subprocesses,
                                  const Session::BeforeStart& before_start = {});

  // All processes of luaspy's PID namespace that run Lua and are `wanted`, if luaspy may look at them. They come and
  // go; ended() never becomes true. What is `wanted` is asked once of each process, again if it has executed another
  // program.
  static ProcessTree of_host(const SamplerOptions& sampler, std::function<bool(pid_t)> wanted);

  // The target first, as long as it lives; then its descendants. Empty before ended() only while a descendant that
  // was born, or has executed a program, moments ago may still turn out to run Lua: a daemon that its parents leave.
  const std::vector<std::unique_ptr<Session>>& sessions() const { return sessions_; }
  // Not of a host, which has none.
  Session& target() { return assert(has_target()), *target_; }
  bool has_target() const { return target_ != nullptr; }
  const SamplerOptions& sampler_options() const { return sampler_; }
  // What the numbers of its threads and stacks stand for.
  EventTables& tables() { return *sampler_.tables; }
  bool has_subprocesses() const { return subprocesses_; }

  // From now on, the kernel tells of threads and processes that begin and end, if it may (births.h). To be
  // called once, by a thread that lives as long as this. A launched target is watched from its start. A
  // host is not: that would take some file descriptors for each of its threads.
  void watch_births();
  // The CPU time that its processes have used since watch_births(); none of a host.
  CpuUse cpu_use();
  // Sleeps until then, or until there is something for update() to do: true.
  bool wait(system::Clock::time_point until);
  // Call between ticks. Takes new threads and descendants, and drops those that have ended. Without births it
  // looks for descendants as often as that costs next to nothing, every 100 ms or less often: one that lives
  // for a shorter time is not seen then.
  void update();
  // Sets what to do before a session is dropped.
  void before_drop(std::function<void(Session&)> act) { before_drop_ = std::move(act); }
  // Whether the target and all descendants that run Lua have ended.
  bool ended();
  // What the target has started, at any remove, that lives on and is not among sessions(), as far as births tell.
  std::vector<pid_t> survivors();
  // Waits for the target's own exit status if luaspy has started it; otherwise 0.
  int wait_for_exit() { return target_->wait_for_exit(); }
  // The Lua versions that were seen, as in LuaInspector::layout_names(); each once.
  std::vector<std::string> layout_names() const;
  // Whether any of its processes maps, or has mapped until it ended, a file with a Lua core that
  // luaspy can read.
  bool has_lua() const;
  // Succeeds if some process of the tree has a Lua that can be read; otherwise says why the
  // target has none.
  Result<void> check_lua();

 private:
  // A descendant that has shown no Lua so far: it may still load or exec one.
  struct Candidate {
    std::string executable;
    bool unwanted = false;
    system::Clock::time_point ask_at{}, since{};  // since: its birth, or its last exec, as luaspy saw it
    system::Clock::duration pause{};
  };
  using Sessions = std::vector<std::unique_ptr<Session>>;
  ProcessTree(std::unique_ptr<Session> target, const SamplerOptions& sampler, bool subprocesses,
              std::unique_ptr<Births> births);
  ProcessTree(const SamplerOptions& sampler, std::function<bool(pid_t)> wanted);
  Sessions::iterator find(pid_t pid);
  Session* session_of(pid_t pid);
  void handle_births();  // of what births_ has
  void handle(const Birth& birth);
  void add_candidate(pid_t pid, system::Clock::duration pause);
  Sessions::iterator drop(Sessions::iterator session);
  void drop_ended();
  std::set<pid_t> find_descendants();
  void ask_candidates();
  bool becomes_session(pid_t pid, Candidate& candidate);
  bool is_gone(Session& session);
  void ask_program();

  // How often processes are asked and looked for where nothing tells of births.
  struct Pace {
    system::Clock::duration first, longest;  // between two questions to a process without Lua
    system::Clock::duration search;          // between two searches for descendants, at least
    int search_cost;                         // and at least so many times the CPU time of a search
  };

  SamplerOptions sampler_;
  bool subprocesses_;
  Pace pace_;
  std::function<bool(pid_t)> wanted_;
  Sessions sessions_;
  std::unique_ptr<Session> ended_target_;  // kept for its exit status
  Session* target_ = nullptr;
  std::unique_ptr<Births> births_;  // nullptr: not asked for, or not allowed
  bool hears_all_ = false;          // no birth goes unheard
  CpuClock cpu_;
  std::set<pid_t> may_be_gone_;  // processes of which a thread has ended
  std::map<pid_t, Candidate> candidates_;
  std::set<pid_t> unfollowed_;          // descendants, if they are not followed
  std::set<std::string> layout_names_;  // of sessions that have ended
  bool had_lua_ = false;                // one of them had
  system::Clock::time_point find_at_{}, ask_program_at_{}, ask_program_until_{};
  std::function<void(Session&)> before_drop_;
};

}  // namespace luaspy
