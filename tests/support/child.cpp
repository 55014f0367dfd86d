#include "support/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace luaspy::tests {
namespace {

std::set<pid_t>& started() {
  static std::set<pid_t> pids;
  return pids;
}

}  // namespace

void give_up(const std::string& why) {
  fmt::print(stderr, "tests: {}\n", why);
  std::exit(2);
}

std::string read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  std::array<char, 65536> buffer;
  // A file of /proc may disappear meanwhile: that counts as its end.
  for (ssize_t count = 0; file >= 0 && (count = ::read(file, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  if (file >= 0) ::close(file);
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) give_up("cannot write " + path);
}

Child::Child(const Words& command, const Files& files) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) give_up("fork fails");
  if (pid_ != 0) {
    started().insert(pid_);
    return;
  }
  if (files.ignored != 0) ::signal(files.ignored, SIG_IGN);
  // luaspy is a sibling of its target: for an ordinary user, Yama (ptrace_scope 1) allows it to trace only
  // with this permission.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (files.terminal) ::setsid();  // a terminal that a session leader opens also for reading becomes the session's
  const auto redirect = [](int from, int to) { return from >= 0 && ::dup2(from, to) == to; };
  constexpr int append = O_CREAT | O_APPEND | O_CLOEXEC;
  const auto or_file = [](int file, const std::string& path, int flags) {
    return file >= 0 ? file : ::open(path.c_str(), flags, 0666);
  };
  bool good = redirect(or_file(files.input_fd, "/dev/null", O_RDONLY | O_CLOEXEC), 0) &&
              redirect(or_file(files.output_fd, files.output, O_WRONLY | append), 1) &&
              redirect(or_file(files.errors_fd, files.errors, (files.terminal ? O_RDWR : O_WRONLY) | append), 2);
  if (files.most_bytes != 0) {
    const rlimit limit{files.most_bytes, files.most_bytes};
    good = good && ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
  }
  if (!files.group.empty()) {
    const int procs = ::open(files.group.c_str(), O_WRONLY | O_CLOEXEC);
    good = good && procs >= 0 && ::write(procs, "0", 1) == 1;  // 0: the writing process
  }
  if (files.user != 0)
    good = good && ::setgroups(0, nullptr) == 0 && ::setresgid(files.user, files.user, files.user) == 0 &&
           ::setresuid(files.user, files.user, files.user) == 0;
  if (good) ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

Child::~Child() {
  if (status_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  started().erase(pid_);
}

bool Child::alive() const {
  siginfo_t info{};
  return !status_ && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

void Child::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

std::optional<int> Child::wait(double seconds) {
  if (status_) return status_;
  const int file = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (file < 0) give_up("pidfd_open fails");
  pollfd entry{file, POLLIN, 0};
  const int ended = ::poll(&entry, 1, static_cast<int>(seconds * 1000));
  ::close(file);
  if (ended != 1) return std::nullopt;
  // The end of a traced process is not reported to its parent before its tracer has been notified,
  // although the pidfd already reports it.
  const double deadline = now_s() + seconds;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) != pid_) {
    if (now_s() > deadline) return std::nullopt;
    sleep_ms(0.2);
  }
  started().erase(pid_);
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

int orphans_that_run(const std::string& name) {
  int running = 0;
  std::istringstream children(read_file(fmt::format("/proc/self/task/{}/children", ::getpid())));
  for (pid_t child = 0; children >> child;) {
    if (started().contains(child) || ::waitpid(child, nullptr, WNOHANG) == child) continue;
    running += read_file(fmt::format("/proc/{}/comm", child)) == name + "\n";
  }
  return running;
}

Folder::Folder() {
  const char* const root = std::getenv("TMPDIR");
  path_ = std::string(root != nullptr ? root : "/tmp") + "/luaspy-test-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr || ::chmod(path_.c_str(), 0755) != 0)
    give_up("cannot make a folder below " + path_);
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& file, const std::string& text, unsigned mode) const {
  const std::string unfinished = path(file) + ".unfinished";
  write_file(unfinished, text);
  if (::chmod(unfinished.c_str(), mode) != 0 || std::rename(unfinished.c_str(), path(file).c_str()) != 0)
    give_up("cannot write " + path(file));
  return path(file);
}

Words Folder::names() const {
  Words names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void sleep_ms(double ms) {
  constexpr double watched_ms = 0.1;
  const double end = now_s() + ms / 1e3;
  if (ms > watched_ms) ::usleep(static_cast<useconds_t>((ms - watched_ms) * 1e3));
  while (now_s() < end) {
  }
}

}  // namespace luaspy::tests
