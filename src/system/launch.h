#pragma once
// Starts a program to look at.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "system/calls.h"

namespace luaspy::system {

// A command in a process of its own, with this process's files and environment. It waits before
// exec until start(), so that luaspy can look at it however soon it ends. Without start() it ends
// with this object, and the command is never executed.
class Launch {
 public:
  // `output_to_errors`: what the command writes to standard output goes to standard error.
  explicit Launch(const std::vector<std::string>& command, bool output_to_errors = false);
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  pid_t pid() const { return pid_; }
  // Lets the command start. Returns the failure of exec if there was one; the process is then gone.
  Failure start();

 private:
  pid_t pid_ = -1;
  bool started_ = false;
  Failure failure_;
  FileDescriptor go_, answer_;
};

// Starts a program that goes on without luaspy, in a session of its own and with nothing to read or write. False: it
// could not be started, or has failed within two seconds.
bool start_apart(const std::vector<std::string>& command);

// luaspy itself, with these words, takes the place of this process. Returns only if that fails.
Failure become(const std::vector<std::string>& command);

// Sends SIGTERM to a child that has not been waited for.
void ask_to_end(pid_t child);

// Runs a program to its end, without input. What it wrote to its standard output; nullopt if it could
// not be started, or is known to have failed. The rest of what it writes is discarded.
std::optional<std::string> output_of(const std::vector<std::string>& command);

}  // namespace luaspy::system
