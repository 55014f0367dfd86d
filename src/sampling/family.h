#pragma once
// What a command looks at: the target, and with --subprocesses those of its descendants that run
// Lua, followed as they appear and end.

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
  // The target itself may be without Lua if it was started by us, or if somebody of its family has
  // one.
  static Result<Family> open(const TargetOptions& options, const SamplerOptions& sampler, bool subprocesses);

  // The target first, as long as it lives; then its descendants. Never empty before ended().
  const std::vector<std::unique_ptr<Session>>& sessions() const { return sessions_; }
  Session& target() { return *target_; }
  bool has_subprocesses() const { return subprocesses_; }

  // Call between ticks: looks for new descendants, as often as it costs next to nothing (each 100
  // ms, or less often), and drops those that have ended. One that lives shorter than that is never
  // seen.
  void update();
  // What is to be done before a session is dropped.
  void before_drop(std::function<void(Session&)> act) { before_drop_ = std::move(act); }
  // Has the target ended, and all descendants that run Lua too?
  bool ended();
  // The target's own exit status, if it was started by us; waits for it. Else 0.
  int wait_for_exit() { return target_->wait_for_exit(); }
  // The Luas that were seen, as LuaReader::rows() tells them; each once.
  std::vector<std::string> rows() const;
  // Is a file with a Lua core that luaspy reads mapped in any of its processes?
  bool has_lua() const;
  // Some process of it has a Lua that can be read; otherwise why the target has none.
  Result<void> check_lua();

 private:
  // A descendant without a Lua, as far as is known: it may load or exec one.
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
  std::set<std::string> rows_;  // of those that have ended
  system::Clock::time_point find_at_{};
  std::function<void(Session&)> before_drop_;
};

}  // namespace luaspy
