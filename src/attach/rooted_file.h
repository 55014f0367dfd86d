#pragma once
// Files by the names that a process uses for them: paths within its own root, which symbolic links
// never leave.

#include <sys/types.h>

#include <optional>
#include <string>

#include "attach/credentials.h"
#include "system/calls.h"

namespace luaspy {

// Opens a regular file for reading; empty if there is none that luaspy may read. Nothing else is
// ever opened: opening a FIFO would wake its writer, and opening a device can do anything. `path`:
// absolute, or relative to the current working directory of the process.
FileDescriptor open_file_of(pid_t pid, const std::string& path);

// Which file is open there; nullopt as for system::file_identity.
std::optional<system::FileIdentity> identity_of(const FileDescriptor& file);

// Whether a process with these rights, and with the root and working directory of `pid`, can open
// the file of that path for reading, and whether it is this file. luaspy itself may be allowed more.
// If luaspy cannot take these rights on, its own have to be those of that user.
bool may_read(const Credentials& who, pid_t pid, const std::string& path, const system::FileIdentity& file);

// Does what openat2(2) does with RESOLVE_IN_ROOT and O_PATH, for kernels and sandboxes that lack
// that call.
FileDescriptor open_in_root_stepwise(const FileDescriptor& root, const std::string& path);

}  // namespace luaspy
