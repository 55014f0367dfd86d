#pragma once
// Starting a program to look at.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "system/calls.h"

namespace luaspy::system {

// A command in a process of its own, with this process's files and environment. It waits before
// exec until start(), so that it can be looked at however soon it ends.
class Launch {
 public:
  explicit Launch(const std::vector<std::string>& command);
  pid_t pid() const { return pid_; }
  // exec's failure if the command could not be started; its process is then gone.
  Failure start();

 private:
  pid_t pid_ = -1;
  Failure failure_;
  FileDescriptor go_, answer_;
};

}  // namespace luaspy::system
