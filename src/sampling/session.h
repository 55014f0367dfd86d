#pragma once
// What every command begins with: a target, running or started by us, that may be looked at.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sampling/sampler.h"

namespace luaspy {

// What to look at.
struct TargetOptions {
  int pid = 0;  // 0: launch `command`
  std::vector<std::string> command;
  // --pid auto: the only process that runs Lua; --name. main.cpp makes a pid of them
  // (choose_target.h) before a command sees them.
  bool any = false;
  std::string name;
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const TargetOptions& options, const SamplerOptions& sampler);

  Target& target() { return target_; }
  Sampler& sampler() { return sampler_; }
  bool launched() const { return launched_; }

  // Has the target ended? A launched one is asked for its exit status.
  bool ended();
  // Waits for a launched target; its exit status as a shell would tell it. 0 for one that was
  // running before.
  int wait_for_exit();

  // Has it executed another program since it was opened?
  bool has_new_program() const;

  // There is a Lua in the process that can be read; otherwise why not, with what was looked at.
  Result<void> check_lua();

 private:
  Session(Process process, const SamplerOptions& options, bool launched)
      : target_(std::move(process), options.patience),
        sampler_(target_, options),
        launched_(launched),
        executable_(target_.process().executable()) {}

  Target target_;
  Sampler sampler_;
  bool launched_;
  std::string executable_;
  std::optional<int> exit_status_;
};

}  // namespace luaspy
