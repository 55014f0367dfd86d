#pragma once
// What the file descriptors of a process are, as /proc tells. All text is printable.

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attach/process.h"
#include "attach/waits/sockets.h"

namespace luaspy {

struct OpenFile {
  enum class Kind { listening, connection, other } kind = Kind::other;
  int fd = -1;
  std::string what;  // "/var/log/app.log", "pipe:[12345]", "tcp 127.0.0.1:6379 listening", "eventfd"; "closed" if there
                     // is no such descriptor
};

// Some files in one line: listening sockets and the others each, connections as a number if there
// are several.
std::string summary(std::span<const OpenFile> files, std::size_t left_out);

// "4242 (bash)", by the name that the process goes by.
std::string describe_process(pid_t pid);

class OpenFiles {
 public:
  explicit OpenFiles(pid_t pid) : pid_(pid), living_(living_thread(pid)), sockets_(living_) {}

  OpenFile describe(int fd);
  // Who has the other end of a pipe ("written by 4242 (bash)"); empty if it is no pipe, or nobody
  // that luaspy may look at has it.
  enum class End { reading, writing };  // what the process does with its own
  std::string other_end(int fd, End own);
  // Who holds the lock that a process waits for in flock or fcntl; empty if that is not known.
  std::string lock_holder(int fd) const;
  // What an epoll descriptor watches, at most `most` of it; `left_out`: how many are not among
  // them.
  std::vector<OpenFile> watched_by(int epoll, std::size_t most, std::size_t& left_out);

 private:
  struct Holder {
    pid_t pid;
    int fd;
  };
  void find_pipes();
  std::string link(int fd) const;

  pid_t pid_, living_;  // living_: a thread whose /proc files tell
  Sockets sockets_;
  bool pipes_found_ = false;
  std::unordered_map<std::string, std::vector<Holder>> pipes_;  // by "pipe:[12345]"
};

}  // namespace luaspy
