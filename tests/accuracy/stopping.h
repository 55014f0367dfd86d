#pragma once
// Shared by both accuracy programs: start a target, stop it, and look at it with the same
// components in the same order as Sampler.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "agreement.h"
#include "attach/target.h"
#include "stack/stack_reader.h"

namespace luaspy {

// A target: started, waited for until it says READY, and killed at the end.
class Child {
 public:
  explicit Child(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    char c;
    while (!ready() && ::read(ends[0], &c, 1) == 1) said_ += c;
    close(ends[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }
  pid_t pid() const { return pid_; }
  const std::string& said() const { return said_; }
  bool ready() const { return said_.ends_with("READY\n"); }
  bool wait() {  // for its end; whether it ended well
    int status = -1;
    waitpid(pid_, &status, __WALL);
    pid_ = -1;
    return status == 0;
  }

 private:
  pid_t pid_ = -1;
  std::string said_;
};

// What the sampler does with a stop, and the same without any previous knowledge of the target.
class Pieces {
 public:
  explicit Pieces(Target& target)
      : reader_(target.process(), target.memory(), stacks_, {}, {}),
        agreement_(reader_.modules()),
        look_(target.memory()) {}

  // During the stop.
  bool read(const Registers& registers) {
    registers_ = registers;
    if (!reader_.read(look_, registers, predicted_, true)) return false;
    cold_active.clear();
    Locator cold(own_machine());
    std::vector<Address> deferred;
    cold.try_layouts(reader_.layouts_to_try());
    cold.locate({look_.snapshot, registers, look_.stack()}, {}, Locator::Unknown::read, cold_active, deferred);
    return true;
  }

  // After the stop. False: the prediction was wrong; the sampler would look again.
  bool finish() {
    look_.snapshot.close();
    sample = {};
    finished_ = &nothing_;
    const StackReader::Finished* const finished = reader_.finish(look_, predicted_);
    if (finished == nullptr) return false;
    finished_ = finished;
    sample = finished->sample;
    agreement_.look(reader_, *finished, registers_);
    reader_.refresh_if_stale();
    return true;
  }

  const StackReader& reader() const { return reader_; }
  const Agreement& agreement() const { return agreement_; }
  const Registers& registers() const { return registers_; }
  const Joined& joined() const { return finished_->joined; }
  std::vector<ActiveState> active() const { return finished_->active(); }
  const std::vector<NativeFrame>& natives() const { return finished_->natives(); }
  bool executes(const NativeFrame& frame) const { return reader_.native_code().executes_lua(frame); }
  const Frame& describe(const NativeFrame& frame) const { return reader_.native_code().describe(frame); }
  std::vector<Segment> segments() const { return segments_of(joined().from.lua); }

  Stack stack() const { return stacks_.frames_of(sample.stack); }

  std::vector<ActiveState> cold_active;
  Sample sample;

 private:
  StackTable stacks_;
  StackReader reader_;
  Agreement agreement_;
  Registers registers_;
  StackReader::Look look_;
  StackReader::Prediction predicted_;
  const StackReader::Finished nothing_;
  const StackReader::Finished* finished_ = &nothing_;
};

}  // namespace luaspy
