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
#include "sampling/sampled_process.h"
#include "sampling/sampler.h"
#include "sampling/target_options.h"

namespace luaspy {

class Session : public SampledProcess {
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
  // As it is now; of a process that has ended meanwhile, as it was when it was first seen.
  std::string command() const;
  // SampledProcess. The tables are the sampler's.
  pid_t pid() const override { return target_.process().pid(); }
  std::uint64_t program() const override { return program_; }
  const std::vector<std::shared_ptr<Thread>>& threads() override { return target_.process().threads(); }
  void forget_threads() override { target_.process().forget_threads(); }
  ThreadKey key_of(const Thread& thread) const override { return {program_, pid(), thread.tid(), thread.started()}; }
  ThreadId id_of(const Thread& thread) override;
  const Memory& memory() const override { return target_.memory(); }
  std::unique_ptr<Stop> ask_to_stop(Tracer& tracer, pid_t tid) override {
    return std::make_unique<Stop>(tracer, target_, tid, Stop::Later{});
  }
  bool begin_look() override { return sampler_.reader().lock_soon(); }
  Loss read_stopped(Stop& stop, Thread& thread, const StackReader::Prediction& predicted,
                    Sampler::Look& look) override {
    return sampler_.read_stopped(stop, thread, predicted, look);
  }
  Loss read_without_stop(const SwitchLog& switches, const SwitchLog::Switch& lost,
                         const StackReader::Prediction& predicted, Sampler::Look& look) override {
    return sampler_.read_without_stop(switches, lost, predicted, look);
  }
  Loss read_asleep(Thread& thread, const ThreadState& state, const StackReader::Prediction& predicted,
                   Sampler::Look& look) override {
    return sampler_.read_asleep(thread, state, predicted, look);
  }
  void end_look() override { sampler_.reader().unlock(); }
  Sample finish(Sampler::Look& look, StackReader::Prediction& predicted) override {
    return sampler_.finish(look, predicted).sample;
  }

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
  std::string executable_, command_;  // of the program
  std::optional<ProgramMark> mark_;   // of the program; nullopt: not known yet
  std::optional<int> exit_status_;
};

}  // namespace luaspy
