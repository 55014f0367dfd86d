#pragma once
// Where a launched command writes while top has the terminal: what it would write there goes to a
// file, and to the terminal when top has left it. What it does not write to the terminal is not
// touched.

#include <array>
#include <string>
#include <utility>

#include "base/result.h"
#include "system/calls.h"

namespace luaspy {

class CommandOutput {
 public:
  // This process's own standard files are diverted: a command that is started now inherits them.
  // Its standard input, if that is the terminal, is empty. give_back() puts things right.
  static Result<CommandOutput> divert();
  CommandOutput(CommandOutput&& other) noexcept
      : path_(std::exchange(other.path_, {})), file_(std::move(other.file_)), before_(std::move(other.before_)) {}
  ~CommandOutput();

  void give_back();
  // Writes to standard output what has come since the last time.
  void pour();
  const std::string& path() const { return path_; }

 private:
  CommandOutput() = default;
  std::string path_;                      // removed at the end
  FileDescriptor file_;                   // for reading
  std::array<FileDescriptor, 3> before_;  // of the standard files, those that were diverted
};

}  // namespace luaspy
