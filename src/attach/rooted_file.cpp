#include "attach/rooted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <deque>

#include "attach/process.h"

namespace luaspy {
namespace {

mode_t kind_of(const FileDescriptor& file) {
  struct stat status {};
  return file && ::fstat(file.number(), &status) == 0 ? status.st_mode & S_IFMT : 0;
}

FileDescriptor open_in_root(const FileDescriptor& root, const std::string& path) {
  system::Failure failure;
  FileDescriptor file = system::open_in_root(root, path, O_PATH, &failure);
  if (!file && (failure.not_implemented() || failure.not_permitted())) file = open_in_root_stepwise(root, path);
  return file;
}

// The path of the process's working directory within its root; empty if it is outside, or unknown.
// The kernel shows another process's links relative to luaspy's root if they can be reached from
// there, else as the process itself sees them (fs/d_path.c). That is why the directory that is
// found is compared.
std::string working_directory(pid_t pid, const FileDescriptor& root) {
  const pid_t living = living_thread(pid);
  const FileDescriptor directory = system::open_file(fmt::format("/proc/{}/cwd", living), O_PATH | O_DIRECTORY);
  std::string path = system::read_link(fmt::format("/proc/{}/cwd", living)).value_or("");
  const std::string prefix = system::read_link(fmt::format("/proc/{}/root", living)).value_or("/");
  if (!directory || !path.starts_with('/')) return {};
  if (prefix != "/" && path.starts_with(prefix)) path = '/' + path.substr(prefix.size());
  const FileDescriptor found = open_in_root(root, path);
  const std::optional<system::FileIdentity> identity = identity_of(directory);
  return found && identity && identity_of(found) == identity ? path : "";
}

std::string path_of(const FileDescriptor& file) { return fmt::format("/proc/self/fd/{}", file.number()); }

FileDescriptor open_again(const FileDescriptor& file) {
  return system::open_file(path_of(file), O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

}  // namespace

std::optional<system::FileIdentity> identity_of(const FileDescriptor& file) {
  return system::file_identity(path_of(file));
}

bool may_read(const Credentials& who, pid_t pid, const std::string& path, const system::FileIdentity& file) {
  // A process can use its working directory even if it could not reach it by its path.
  const bool from_root = path.starts_with('/');
  const FileDescriptor from = system::open_file(
      fmt::format("/proc/{}/{}", living_thread(pid), from_root ? "root" : "cwd"), O_PATH | O_DIRECTORY);
  if (!from) return false;
  bool may = false;
  const bool done = act_as(who, [&] {
    const FileDescriptor found = from_root ? open_in_root(from, path)
                                           : FileDescriptor(::openat(from.number(), path.c_str(), O_PATH | O_CLOEXEC));
    may = found && identity_of(found) == file && open_again(found);
  });
  return done ? may : who.user == ::geteuid();
}

FileDescriptor open_in_root_stepwise(const FileDescriptor& root, const std::string& path) {
  constexpr int most_steps = 1000, most_links = 40;  // path_resolution(7)
  std::vector<FileDescriptor> way;                   // the directories entered, from below the root on
  std::deque<std::string> steps;
  const auto add_steps = [&](const std::string& text) {
    std::deque<std::string> added;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('/', at), text.size());
      if (end > at) added.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    steps.insert(steps.begin(), added.begin(), added.end());
  };
  add_steps(path);
  int links = 0;
  for (int i = 0; !steps.empty(); ++i) {
    const std::string step = steps.front();
    steps.pop_front();
    if (i == most_steps) return {};
    if (step == ".") continue;
    if (step == "..") {
      if (!way.empty()) way.pop_back();
      continue;
    }
    const int from = way.empty() ? root.number() : way.back().number();
    FileDescriptor next(::openat(from, step.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return {};
    if (kind_of(next) != S_IFLNK) {
      way.push_back(std::move(next));
      continue;
    }
    std::array<char, PATH_MAX> target;
    const ssize_t length = ::readlinkat(next.number(), "", target.data(), target.size());
    if (length <= 0 || ++links > most_links) return {};
    if (target[0] == '/') way.clear();
    add_steps(std::string(target.data(), static_cast<std::size_t>(length)));
  }
  return way.empty() ? FileDescriptor() : std::move(way.back());
}

FileDescriptor open_file_of(pid_t pid, const std::string& path) {
  const FileDescriptor root = system::open_file(fmt::format("/proc/{}/root", living_thread(pid)), O_PATH | O_DIRECTORY);
  if (!root || path.empty()) return {};
  std::string whole = path;
  if (path[0] != '/') {
    const std::string directory = working_directory(pid, root);
    if (directory.empty()) return {};
    whole = directory + '/' + path;
  }
  const FileDescriptor file = open_in_root(root, whole);
  if (kind_of(file) != S_IFREG) return {};
  return open_again(file);
}

}  // namespace luaspy
