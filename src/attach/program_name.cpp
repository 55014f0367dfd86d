#include "attach/program_name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "attach/live_memory.h"
#include "attach/proc_files.h"
#include "base/text.h"
#include "system/calls.h"

namespace luaspy {
namespace {

constexpr std::size_t longest_path = 1 << 12;  // PATH_MAX (limits.h)

// The kernel's copy of the auxiliary vector (proc(5), /proc/PID/auxv): pairs of a type and a value.
Address address_of_name(pid_t pid) {
  const std::string auxv = system::read_file(fmt::format("/proc/{}/auxv", pid)).value_or("");
  std::array<std::uint64_t, 2> pair{};
  for (std::size_t at = 0; at + sizeof pair <= auxv.size(); at += sizeof pair) {
    std::memcpy(pair.data(), auxv.data() + at, sizeof pair);
    if (pair[0] == AT_EXECFN) return pair[1];
  }
  return 0;
}

// Where it lies, the stack ends soon: it is read page by page.
std::string started_by(pid_t pid) {
  const LiveMemory memory(pid);
  std::string path;
  for (Address at = address_of_name(pid); at != 0 && path.size() < longest_path; at = page_start(at) + smallest_page) {
    std::array<char, smallest_page> text;
    const auto piece = std::span(text).first(smallest_page - at % smallest_page);
    if (!memory.read(at, std::as_writable_bytes(piece))) return {};
    const auto end = std::ranges::find(piece, '\0');
    path.append(piece.begin(), end);
    if (end != piece.end()) return path;
  }
  return {};
}

// As the process sees it. A relative path counts from where the process is now.
bool leads_to_what_runs(pid_t pid, const std::string& path) {
  const std::string its = fmt::format("/proc/{}/", pid);
  const FileDescriptor root = system::open_file(its + "root", O_PATH | O_DIRECTORY);
  system::Failure failure;
  const FileDescriptor file = path.starts_with('/') ? system::open_in_root(root, path, O_PATH, &failure)
                                                    : system::open_file(its + "cwd/" + path, O_PATH);
  struct stat found {
  }, runs{};
  return file && ::fstat(file.number(), &found) == 0 && ::stat((its + "exe").c_str(), &runs) == 0 &&
         found.st_dev == runs.st_dev && found.st_ino == runs.st_ino;
}

}  // namespace

std::string program_of(pid_t pid) {
  std::string file = executable_of(pid);
  const pid_t living = living_thread(pid);
  const std::string path = started_by(living);
  if (path.empty() || base_name(path).empty() || base_name(path) == base_name(file)) return file;
  if (!leads_to_what_runs(living, path)) return file;
  if (path.starts_with('/')) return printable(path, longest_path);
  return printable(system::read_link(fmt::format("/proc/{}/cwd", living)).value_or("") + "/" + path, longest_path);
}

}  // namespace luaspy
