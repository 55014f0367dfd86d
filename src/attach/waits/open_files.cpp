#include "attach/waits/open_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

constexpr std::size_t most_named = 4;  // items in one line

std::string fd_path(pid_t tid, int fd) { return fmt::format("/proc/{}/fd/{}", tid, fd); }

// The permissions of the link in /proc/PID/fd show how the file was opened (proc(5)).
bool opened_for(pid_t pid, int fd, mode_t mode) {
  struct stat status {};
  return ::lstat(fd_path(pid, fd).c_str(), &status) == 0 && (status.st_mode & mode) != 0;
}

bool is_terminal_path(std::string_view path) {
  return path.starts_with("/dev/pts/") || path.starts_with("/dev/tty") || path == "/dev/console";
}

std::string joined(const std::vector<std::string>& parts, std::size_t left_out) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return left_out == 0 ? text : fmt::format("{}{}{} more", text, text.empty() ? "" : ", ", left_out);
}

}  // namespace

std::string summary(std::span<const OpenFile> files, std::size_t left_out) {
  std::vector<std::string> parts;
  std::vector<const OpenFile*> connections;
  for (const OpenFile& file : files) {
    if (file.kind == OpenFile::Kind::connection) connections.push_back(&file);
    else if (parts.size() >= most_named) ++left_out;
    else if (file.kind == OpenFile::Kind::listening) parts.insert(parts.begin(), file.what);
    else parts.push_back(file.what);
  }
  if (connections.size() == 1) parts.push_back(connections.front()->what);
  if (connections.size() > 1) parts.push_back(fmt::format("{} connections", connections.size()));
  return parts.empty() && left_out == 0 ? "nothing" : joined(parts, left_out);
}

std::string describe_process(pid_t pid) {
  const std::string text = system::read_file(fmt::format("/proc/{}/comm", pid)).value_or("");
  std::string_view rest = text;
  return fmt::format("{} ({})", pid, printable(next_line(rest)));
}

std::string OpenFiles::link(int fd) const { return system::read_link(fd_path(living_, fd)).value_or(""); }

OpenFile OpenFiles::describe(int fd) {
  OpenFile file{OpenFile::Kind::other, fd, link(fd)};
  if (file.what.empty()) {
    file.what = "closed";
    return file;
  }
  std::string_view name = file.what;
  constexpr std::string_view socket = "socket:[", anonymous = "anon_inode:";
  if (name.starts_with(socket)) {
    name.remove_prefix(socket.size());
    if (std::optional<Socket> found = sockets_.find(number<std::uint64_t>(name))) {
      file.kind = found->kind == Socket::Kind::listening    ? OpenFile::Kind::listening
                  : found->kind == Socket::Kind::connection ? OpenFile::Kind::connection
                                                            : OpenFile::Kind::other;
      file.what = std::move(found->text);
    }
    return file;
  }
  if (name.starts_with(anonymous)) {
    name.remove_prefix(anonymous.size());
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    file.what = printable(name);
    return file;
  }
  const bool is_terminal = is_terminal_path(name), is_pipe = !is_terminal && named_pipe(living_, fd, name);
  file.what = (is_terminal ? "terminal " : is_pipe ? "named pipe " : "") + printable(name);
  return file;
}

// A named pipe is a file; nobody opens it here, so looking at it never blocks.
std::optional<system::FileIdentity> OpenFiles::named_pipe(pid_t pid, int fd, std::string_view name) {
  if (!name.starts_with('/')) return std::nullopt;
  const std::optional<system::FileIdentity> file = system::file_identity(fd_path(pid, fd));
  return file && S_ISFIFO(file->type) ? file : std::nullopt;
}

// One pass over the open files of all processes that luaspy may look at: some 2 us per descriptor.
// It finds who holds unnamed pipes, and the named one `wanted`; others by that name in other places
// have other numbers.
void OpenFiles::find_pipes(const std::string& wanted, const std::optional<system::FileIdentity>& named) {
  constexpr int most_descriptors = 100'000;
  int left = most_descriptors;
  for (const pid_t pid : system::numeric_entries("/proc")) {
    for (const int fd : system::numeric_entries(fmt::format("/proc/{}/fd", pid))) {
      if (--left < 0) return;
      const std::optional<std::string> target = system::read_link(fd_path(pid, fd));
      if (!target) continue;
      if (target->starts_with("pipe:[")) {
        if (!named) pipes_[*target].push_back({pid, fd});
      } else if (named && *target == wanted && named_pipe(pid, fd, *target) == named) {
        pipes_[wanted].push_back({pid, fd});
      }
    }
  }
}

std::string OpenFiles::other_end(int fd, End own) {
  const std::string name = link(fd);
  const std::optional<system::FileIdentity> named = named_pipe(living_, fd, name);
  if (!named && !name.starts_with("pipe:[")) return {};
  if (named ? !pipes_.contains(name) : !std::exchange(pipes_found_, true)) find_pipes(name, named);
  std::set<pid_t> others;
  bool this_process = false;
  for (const Holder& holder : pipes_[name]) {
    if (!opened_for(holder.pid, holder.fd, own == End::reading ? S_IWUSR : S_IRUSR)) continue;
    if (holder.pid == pid_) this_process = true;
    else others.insert(holder.pid);
  }
  std::vector<std::string> parts;
  for (const pid_t pid : others) {
    if (parts.size() < most_named) parts.push_back(describe_process(pid));
  }
  const std::size_t left_out = others.size() - parts.size();
  if (this_process && others.empty()) parts.push_back("this process itself");
  if (parts.empty()) return {};
  return fmt::format("{} by {}", own == End::reading ? "written" : "read", joined(parts, left_out));
}

// proc(5), /proc/locks: "1: FLOCK ADVISORY WRITE 812 08:01:4711 0 EOF"; the line of a waiter has
// the number of the lock it waits for, followed by "->".
std::string OpenFiles::lock_holder(int fd) const {
  const std::optional<system::FileIdentity> locked = system::file_identity(fd_path(living_, fd));
  if (!locked) return {};
  const std::string locks = system::read_file("/proc/locks").value_or("");
  std::string_view lines = locks, holder_number;
  pid_t holder = 0;
  while (!lines.empty()) {
    std::string_view line = next_line(lines);
    const std::string_view lock = next_word(line);
    std::string_view kind = next_word(line);
    const bool waits = kind == "->";
    if (waits) kind = next_word(line);
    skip_words(line, 2);
    const pid_t pid = number<pid_t>(next_word(line));
    const std::string_view file = next_word(line);
    if (!waits) {
      holder_number = lock, holder = pid;
      continue;
    }
    const std::string_view inode = file.substr(std::min(file.rfind(':') + 1, file.size()));
    if (lock == holder_number && pid == pid_ && number<std::uint64_t>(inode) == locked->inode && holder > 0)
      return "held by " + describe_process(holder);
  }
  return {};
}

// proc(5), /proc/PID/fdinfo: a line "tfd: 7 events: 19 data: …" for each.
std::vector<OpenFile> OpenFiles::watched_by(int epoll, std::size_t most, std::size_t& left_out) {
  std::vector<OpenFile> files;
  left_out = 0;
  const std::string text = system::read_file(fmt::format("/proc/{}/fdinfo/{}", living_, epoll)).value_or("");
  std::string_view lines = text;
  while (!lines.empty()) {
    std::string_view line = next_line(lines);
    if (next_word(line) != "tfd:") continue;
    if (files.size() < most) files.push_back(describe(number<int>(next_word(line))));
    else ++left_out;
  }
  return files;
}

}  // namespace luaspy
