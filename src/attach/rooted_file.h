#pragma once
// Files by the names that a process uses for them: paths within its own root, which symbolic links
// never leave.

#include <string>

#include "system/calls.h"

namespace luaspy {

// Opens a regular file for reading; empty if there is none that luaspy may read. Nothing else is
// ever opened: opening a FIFO would wake its writer, and opening a device can do anything. `path`:
// absolute, or relative to the current working directory of the process.
FileDescriptor open_file_of(pid_t pid, const std::string& path);

// Does what openat2(2) does with RESOLVE_IN_ROOT and O_PATH, for kernels and sandboxes that lack
// that call.
FileDescriptor open_in_root_stepwise(const FileDescriptor& root, const std::string& path);

}  // namespace luaspy
