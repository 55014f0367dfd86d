#include "system/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "system/signals.h"

namespace luaspy::system {
namespace {

// As exec takes them; valid as long as the words.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

// The child execs when its pipe `go` is closed. Its end of `answer` closes by itself at a
// successful exec, and carries errno after a failed one.
Launch::Launch(const std::vector<std::string>& command, bool output_to_errors) {
  std::vector<char*> arguments = pointers_to(command);
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
  handle_signals_as_before();
  ::close(go_.release());
  char nothing = 0;
  while (::read(wait_end.number(), &nothing, 1) < 0 && errno == EINTR) {
  }
  if (!output_to_errors || ::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) ::execvp(arguments[0], arguments.data());
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

bool start_apart(const std::vector<std::string>& command) {
  std::vector<char*> arguments = pointers_to(command);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = -1;
  const bool started = ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ) == 0;
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  constexpr std::chrono::seconds patience(2);
  constexpr std::chrono::milliseconds apart(20);
  for (const Clock::time_point end = Clock::now() + patience; started && Clock::now() < end;) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    (void)sleep_until(Clock::now() + apart);
  }
  return started;
}

Failure become(const std::vector<std::string>& command) {
  std::vector<char*> arguments = pointers_to(command);
  const itimerval none{};
  ::setitimer(ITIMER_REAL, &none, nullptr);  // it would outlive the handler of its signal
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
  ::execv("/proc/self/exe", arguments.data());
  return {errno};
}

void ask_to_end(pid_t child) { ::kill(child, SIGTERM); }

std::optional<std::string> output_of(const std::vector<std::string>& command) {
  std::vector<char*> arguments = pointers_to(command);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.number(), 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const bool started = ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  { const FileDescriptor closed(std::move(write_end)); }
  if (!started) return std::nullopt;
  std::string output;
  std::array<char, 4096> bytes;
  for (ssize_t count = 0; (count = ::read(read_end.number(), bytes.data(), bytes.size())) != 0;) {
    if (count > 0) output.append(bytes.data(), static_cast<std::size_t>(count));
    else if (errno != EINTR) break;
  }
  int status = 0;  // stays so if another thread, which waits for any child, has received it
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(output) : std::nullopt;
}

}  // namespace luaspy::system
