#pragma once
// What every command begins with: a target, already running or started by luaspy, that luaspy may
// look at.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attach/program_mark.h"
#include "base/thread_key.h"
#include "sampling/sampler.h"

namespace luaspy {

// What to look at.
struct TargetOptions {
  int pid = 0;  // 0: launch `command`
  std::vector<std::string> command;
  // any: --pid auto, the only process that runs Lua. name: --name. main.cpp turns them into a pid
  // (choose_target.h) before a command sees them.
  bool any = false;
  std::string name;
  bool debuginfod = false;  // fetch the debug files of its programs (debuginfod.h)
};

class Session {
 public:
  // What to do before a command is started, with the process that it will have. If it fails, nothing
  // is started.
  using BeforeStart = std::function<Result<void>(pid_t pid)>;
  static Result<std::unique_ptr<Session>> open(const TargetOptions& options, const SamplerOptions& sampler,
                                               const BeforeStart& before_start = {});

  Target& target() { return target_; }
  Sampler& sampler() { return sampler_; }
  bool launched() const { return launched_; }

  // Whether the target has ended. Collects the exit status of a launched one.
  bool ended();
  // Waits for a launched target and returns its exit status as a shell would report it. 0 for a
  // target that was already running.
  int wait_for_exit();

  // Whether it has executed another program since it was opened, or since begin_program().
  bool has_new_program();
  // It has executed another program, and continues to be looked at: its threads are others from now on.
  void begin_program();
  // ThreadKey::program of its threads.
  std::uint64_t program() const { return program_; }
  ThreadKey key_of(const Thread& thread) const {
    return {program_, target_.process().pid(), thread.tid(), thread.started()};
  }
  // Its number among the threads of the sampler's tables. The first time, its name is asked for, and its process's.
  ThreadId id_of(const Thread& thread);

  // Whether a file with a Lua core that luaspy can read is mapped.
  bool has_readable_lua();
  // Succeeds if the process has a Lua that can be read; otherwise says why not, and what was
  // searched.
  Result<void> check_lua();
  // The same, at most 0.2 s later if there is none: a library may be about to be loaded, or loaded again.
  Result<void> await_lua();

 private:
  Session(Process process, const SamplerOptions& options, bool launched)
      : target_(std::move(process), options.patience), sampler_(target_, options), launched_(launched) {
    begin_program();
  }

  Target target_;
  Sampler sampler_;
  bool launched_;
  std::uint64_t program_ = 0;
  std::string executable_;           // of the program
  std::optional<ProgramMark> mark_;  // of the program; nullopt: not known yet
  std::optional<int> exit_status_;
};

}  // namespace luaspy
