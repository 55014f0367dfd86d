#include "system/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace luaspy::system {

// The child execs when its pipe `go` is closed. Its end of `answer` closes by itself at a
// successful exec, and carries errno after a failed one.
Launch::Launch(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> go{}, answer{};
  if (::pipe2(go.data(), O_CLOEXEC) != 0 || ::pipe2(answer.data(), O_CLOEXEC) != 0) {
    failure_ = {errno};
    return;
  }
  const FileDescriptor wait_end(go[0]), error_end(answer[1]);
  go_ = FileDescriptor(go[1]);
  answer_ = FileDescriptor(answer[0]);
  pid_ = ::fork();
  failure_ = {pid_ < 0 ? errno : 0};
  if (pid_ != 0) return;
  ::close(go_.release());
  char nothing = 0;
  while (::read(wait_end.number(), &nothing, 1) < 0 && errno == EINTR) {
  }
  ::execvp(arguments[0], arguments.data());
  const int code = errno;
  (void)!::write(error_end.number(), &code, sizeof code);
  ::_exit(127);
}

Launch::~Launch() {
  if (started_ || pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Failure Launch::start() {
  if (failure_) return failure_;
  started_ = true;
  { const FileDescriptor closed(std::move(go_)); }
  int code = 0;
  ssize_t count = 0;
  while ((count = ::read(answer_.number(), &code, sizeof code)) < 0 && errno == EINTR) {
  }
  if (count != sizeof code) return {};
  ::waitpid(pid_, nullptr, 0);
  return {code};
}

}  // namespace luaspy::system
