#include "attach/proc_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {

std::string proc_path(pid_t pid, std::string_view file) { return fmt::format("/proc/{}/{}", pid, file); }

char state_in(std::string_view stat) {
  const std::size_t end = stat.rfind(')');
  return end != stat.npos && end + 2 < stat.size() ? stat[end + 2] : '?';
}

std::string name_in(const std::string& comm_file) {
  std::string name = system::read_file(comm_file).value_or("");
  if (name.ends_with('\n')) name.pop_back();
  return printable(name);
}

bool thread_lives(pid_t pid, pid_t tid) {
  return lives(state_in(system::read_file(fmt::format("/proc/{}/task/{}/stat", pid, tid)).value_or("")));
}

pid_t living_thread(pid_t pid) {
  if (thread_lives(pid, pid)) return pid;
  const std::vector<pid_t> threads = system::numeric_entries(proc_path(pid, "task"));
  const auto found = std::ranges::find_if(threads, [&](pid_t tid) { return thread_lives(pid, tid); });
  return found != threads.end() ? *found : pid;
}

std::string executable_of(pid_t pid) {
  return printable(system::read_link(proc_path(living_thread(pid), "exe")).value_or("?"), most_shown);
}

std::string command_of(pid_t pid) {
  std::string text = system::read_file(proc_path(living_thread(pid), "cmdline")).value_or("");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text.empty() ? '[' + name_in(proc_path(pid, "comm")) + ']' : printable(text, most_shown);
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t tid : system::numeric_entries(proc_path(pid, "task"))) {
    const std::string text = system::read_file(fmt::format("/proc/{}/task/{}/children", pid, tid)).value_or("");
    std::string_view rest = text;
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest))
      children.push_back(number<pid_t>(word));
  }
  return children;
}

// map_files needs a capability in the first user namespace, but works for deleted and replaced
// files. /proc/PID/exe needs none and works for the program itself. /proc/PID/root works for other
// mount namespaces; if the process has only changed its root, luaspy sees the path as seen from its
// own root (fs/d_path.c). The inode shows whether the file there is still the one that is mapped.
// The device does not: with overlayfs and btrfs, maps shows another one than stat(2). Module
// compares what it can.
FileDescriptor open_mapped(pid_t pid, const Mapping& mapping) {
  const pid_t living = living_thread(pid);
  FileDescriptor file = system::open_file(
      fmt::format("/proc/{}/map_files/{:x}-{:x}", living, mapping.start, mapping.end), O_RDONLY);
  if (file) return file;
  for (const std::string& candidate :
       {proc_path(living, "exe"), proc_path(living, "root") + mapping.path, mapping.path}) {
    struct stat status {};
    // What has this path now must not be opened just to check it: opening a FIFO would wake its
    // writer, and opening a device can do anything.
    if (::stat(candidate.c_str(), &status) != 0 || status.st_ino != mapping.inode || !S_ISREG(status.st_mode)) continue;
    file = system::open_file(candidate, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (file && ::fstat(file.number(), &status) == 0 && status.st_ino == mapping.inode && S_ISREG(status.st_mode))
      return file;
  }
  return {};
}

std::optional<FileVersion> version_of(pid_t pid, const Mapping& mapping) {
  struct stat status {};
  const std::string path = proc_path(living_thread(pid), "root") + mapping.path;
  if (mapping.inode == 0 || ::stat(path.c_str(), &status) != 0 || status.st_ino != mapping.inode) return std::nullopt;
  return version_of(status);
}

// proc(5), /proc/PID/stat: (14) utime, (15) stime, (16) cutime, (17) cstime, in clock ticks.
std::optional<ProcessCpuTime> cpu_time_of(pid_t pid) {
  const std::string stat = system::read_file(proc_path(pid, "stat")).value_or("");
  const std::size_t end = stat.rfind(')');
  if (end == stat.npos) return std::nullopt;
  std::string_view rest = std::string_view(stat).substr(end + 1);
  skip_words(rest, 14 - 3);
  const std::int64_t tick_ns = 1'000'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1L);
  const auto next = [&] { return number<std::int64_t>(next_word(rest)) * tick_ns; };
  ProcessCpuTime time;
  time.tick_ns = tick_ns;
  time.user_ns = next(), time.system_ns = next();
  time.children_ns = next();
  time.children_ns += next();
  clockid_t clock{};
  timespec exact{};
  const bool is_exact = ::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &exact) == 0;
  time.ns = is_exact ? exact.tv_sec * 1'000'000'000 + exact.tv_nsec : time.user_ns + time.system_ns;
  return time;
}

}  // namespace luaspy
