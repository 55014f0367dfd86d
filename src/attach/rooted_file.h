#pragma once
// Files by the names that a process has for them: paths of its own root, whose symbolic links never
// lead out of it.

#include <string>

#include "system/calls.h"

namespace luaspy {

// A regular file, opened for reading; empty if there is none there that luaspy may read. Nothing
// else is ever opened: a FIFO would wake its writer, a device do anything. `path`: absolute, or
// relative to the working directory that the process has now.
FileDescriptor open_file_of(pid_t pid, const std::string& path);

// As openat2(2) does it with RESOLVE_IN_ROOT: O_PATH, for kernels and sandboxes that do not have
// it.
FileDescriptor open_in_root_stepwise(const FileDescriptor& root, const std::string& path);

}  // namespace luaspy
