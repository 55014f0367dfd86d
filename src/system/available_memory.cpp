#include "system/available_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/words.h"
#include "system/calls.h"

namespace luaspy::system {
namespace {

using Bytes = std::optional<std::uint64_t>;

Bytes least(Bytes one, Bytes other) { return one && other ? std::min(*one, *other) : one ? one : other; }

std::uint64_t remaining(std::uint64_t limit, std::uint64_t used) { return limit > used ? limit - used : 0; }

// The value of a line "NAME VALUE …".
Bytes line_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (next_word(line) == name) return number<std::uint64_t>(next_word(line));
  }
  return std::nullopt;
}

Bytes kilobytes_of(const char* file, std::string_view name) {
  const Bytes value = line_of(read_file(file).value_or(""), name);
  return value ? Bytes(*value * 1024) : std::nullopt;
}

// setrlimit(2): `used` is what counts for it.
Bytes of_limit(int resource, const char* used) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return remaining(limit.rlim_cur, kilobytes_of("/proc/self/status", used).value_or(0));
}

// One version of control groups: where its hierarchy is, and the names of what is asked.
struct Groups {
  const char *mounted, *limit, *used, *inactive, *active;
};

// Each group from `path` outwards has a limit of its own. Pages of files count for it, but the kernel
// takes them back before it lets anybody run out of memory.
Bytes of_groups(const Groups& groups, std::string path) {
  Bytes available;
  for (;;) {
    const std::string folder = groups.mounted + path;
    const std::string limit = read_file(folder + groups.limit).value_or("max"),
                      used = read_file(folder + groups.used).value_or("");
    if (!limit.starts_with("max") && !used.empty()) {
      const std::string parts = read_file(folder + "/memory.stat").value_or("");
      const std::uint64_t files = line_of(parts, groups.inactive).value_or(0) +
                                  line_of(parts, groups.active).value_or(0);
      available = least(available,
                        remaining(number<std::uint64_t>(limit), remaining(number<std::uint64_t>(used), files)));
    }
    if (path.empty()) return available;
    path.resize(path.rfind('/'));
  }
}

// cgroups(7): lines of "ID:CONTROLLERS:/PATH"; version 2 has no controllers there. In a container the
// path may begin outside of what it sees; its own group is then where the hierarchy is mounted.
Bytes of_cgroups() {
  constexpr Groups version_2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file", "active_file"};
  constexpr Groups version_1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                "total_inactive_file", "total_active_file"};
  const std::string own = read_file("/proc/self/cgroup").value_or("");
  Bytes available;
  for (std::string_view text = own; !text.empty();) {
    const std::string_view line = next_line(text);
    const std::size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string_view names = line.substr(controllers, path - 1 - controllers);
    std::string group(line.substr(path));
    if (group.ends_with('/')) group.pop_back();
    if (names.empty()) available = least(available, of_groups(version_2, group));
    else if (names == "memory") available = least(available, of_groups(version_1, group));
  }
  return available;
}

}  // namespace

std::optional<std::uint64_t> available_memory() {
  Bytes available = least(kilobytes_of("/proc/meminfo", "MemAvailable:"), of_cgroups());
  available = least(available, of_limit(RLIMIT_AS, "VmSize:"));
  return least(available, of_limit(RLIMIT_DATA, "VmData:"));
}

}  // namespace luaspy::system
