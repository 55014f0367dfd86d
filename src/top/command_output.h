#pragma once
// Diverts what a launched command writes to the terminal while top uses it: that goes to a file,
// and to the terminal when top has left it. Streams that are not connected to the terminal are left
// alone.

#include <array>
#include <string>
#include <utility>

#include "base/result.h"
#include "system/calls.h"

namespace luaspy {

class CommandOutput {
 public:
  // Diverts this process's own standard files, so that a command that is started now inherits them.
  // Its standard input is empty if it was the terminal. give_back() restores the files.
  static Result<CommandOutput> divert();
  CommandOutput(CommandOutput&& other) noexcept
      : path_(std::exchange(other.path_, {})), file_(std::move(other.file_)), before_(std::move(other.before_)) {}
  ~CommandOutput();

  void give_back();
  // Writes to standard output what has been written to the file since the last call.
  void pour();
  const std::string& path() const { return path_; }

 private:
  CommandOutput() = default;
  std::string path_;                      // removed at the end
  FileDescriptor file_;                   // for reading
  std::array<FileDescriptor, 3> before_;  // the original of each standard file that was diverted
};

}  // namespace luaspy
