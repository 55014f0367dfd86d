#pragma once
// What a command looks at: the target, and with --subprocesses, or if luaspy has started it, also its
// descendants that run Lua, tracked as they appear and end.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sampling/session.h"
#include "system/calls.h"

namespace luaspy {

class Family {
 public:
  // The target itself need not have Lua if luaspy has started it, or if another process of the
  // family has one.
  static Result<Family> open(const TargetOptions& options, const SamplerOptions& sampler, bool subprocesses,
                             const Session::BeforeStart& before_start = {});

  // The target first, as long as it lives; then its descendants. Never empty before ended().
  const std::vector<std::unique_ptr<Session>>& sessions() const { return sessions_; }
  Session& target() { return *target_; }
  bool has_subprocesses() const { return subprocesses_; }

  // Call between ticks. Looks for new descendants as often as that costs next to nothing (every 100
  // ms, or less often), and drops those that have ended. A shorter-lived one is never seen.
  void update();
  // Sets what to do before a session is dropped.
  void before_drop(std::function<void(Session&)> act) { before_drop_ = std::move(act); }
  // Whether the target and all descendants that run Lua have ended.
  bool ended();
  // Waits for the target's own exit status if luaspy has started it; otherwise 0.
  int wait_for_exit() { return target_->wait_for_exit(); }
  // The Lua versions that were seen, as in LuaReader::rows(); each once.
  std::vector<std::string> rows() const;
  // Whether any of its processes maps, or has mapped until it ended, a file with a Lua core that
  // luaspy can read.
  bool has_lua() const;
  // Succeeds if some process of the family has a Lua that can be read; otherwise says why the
  // target has none.
  Result<void> check_lua();

 private:
  // A descendant that has shown no Lua so far: it may still load or exec one.
  struct Candidate {
    std::string executable;
    system::Clock::time_point ask_at{};
    std::chrono::milliseconds pause{};
  };
  Family(std::unique_ptr<Session> target, const SamplerOptions& sampler, bool subprocesses);
  void find_descendants();
  void consider(pid_t pid);
  bool is_gone(Session& session) const;

  SamplerOptions sampler_;
  bool subprocesses_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::unique_ptr<Session> ended_target_;  // kept for its exit status
  Session* target_;
  std::map<pid_t, Candidate> candidates_;
  std::set<std::string> rows_;  // of sessions that have ended
  bool had_lua_ = false;        // one of them had
  system::Clock::time_point find_at_{};
  std::function<void(Session&)> before_drop_;
};

}  // namespace luaspy
