#pragma once
// The security modules of the kernel (Documentation/admin-guide/LSM), as far as it says which are active.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace luaspy::system {

// The kernel's names of the active ones: "selinux", "apparmor". From lsm_list_modules(2), or from
// /sys/kernel/security/lsm; nullopt if the kernel has neither. A module that only watches, as SELinux in
// permissive mode does, is not in it.
std::optional<std::vector<std::string>> security_modules();
// What they call a process: "docker-default (enforce)"; "" if they have no name for it, or do not say it.
std::string security_label(pid_t pid);

}  // namespace luaspy::system
