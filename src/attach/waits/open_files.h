#pragma once
// What the file descriptors of a process are, as /proc reports it. All text is printable.

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attach/proc_files.h"
#include "attach/waits/sockets.h"
#include "attach/waits/wait.h"
#include "system/calls.h"

namespace luaspy {

// Some files in one line: each one by name, except that several connections are shown as a number.
std::string summary(std::span<const OpenFile> files, std::size_t left_out);

// "4242 (bash)": the number and name of a process.
std::string describe_process(pid_t pid);

class OpenFiles {
 public:
  explicit OpenFiles(pid_t pid) : pid_(pid), living_(living_thread(pid)), sockets_(living_) {}

  OpenFile describe(int fd);
  // Who has the other end of a pipe, named or not ("written by 4242 (bash)"); empty if it is none, or no
  // process that luaspy may look at has that end.
  enum class End { reading, writing };  // the end that the process itself has
  std::string other_end(int fd, End own);
  // Who holds the lock that the process waits for in flock or fcntl; empty if unknown.
  std::string lock_holder(int fd) const;
  // What an epoll descriptor watches, at most `most` files; `left_out`: how many more there are.
  std::vector<OpenFile> watched_by(int epoll, std::size_t most, std::size_t& left_out);

 private:
  struct Holder {
    pid_t pid;
    int fd;
  };
  void find_pipes(const std::string& wanted, const std::optional<system::FileIdentity>& named);
  // Which file it is, if it is a pipe with a name in a file system.
  static std::optional<system::FileIdentity> named_pipe(pid_t pid, int fd, std::string_view name);
  std::string link(int fd) const;

  pid_t pid_, living_;  // living_: a thread whose /proc files are usable
  Sockets sockets_;
  bool pipes_found_ = false;
  std::unordered_map<std::string, std::vector<Holder>> pipes_;  // by "pipe:[12345]", or the path of a named one
};

}  // namespace luaspy
