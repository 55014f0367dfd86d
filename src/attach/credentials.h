#pragma once
// What a process may do with files, and doing something with no more rights than that.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace luaspy {

// credentials(7). By default those of a stranger, who may read what everybody may.
struct Credentials {
  uid_t user = 65534;
  gid_t group = 65534;
  std::vector<gid_t> groups;
  // Effective ones of root, bits as in capabilities(7). Those of other users do not count.
  std::uint64_t capabilities = 0;
};

// Of the process as it is now (proc(5), /proc/PID/status). A stranger's, if it runs with rights that
// are not those of the user who started it (set-user-ID). nullopt: there is no such process.
std::optional<Credentials> credentials_of(pid_t pid);

// Calls `act` in a thread of its own, which has these rights over files and no others. False,
// without a call: luaspy may not take them on, or there can be no thread.
bool act_as(const Credentials& who, const std::function<void()>& act);

}  // namespace luaspy
