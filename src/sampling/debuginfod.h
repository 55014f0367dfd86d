#pragma once
// Debug files from debuginfod servers, which give stripped programs their symbols. luaspy opens no
// connection itself: elfutils' debuginfod-find does, and keeps what it has fetched.

#include "attach/process.h"
#include "base/result.h"

namespace luaspy {

// From now on, debug files that are not installed are fetched when the symbols of their program are
// needed, which may take seconds. An error if that cannot work.
Result<void> use_debuginfod();

// After use_debuginfod(): fetches those of a process at once, so that nothing waits for them later.
void fetch_debug_files(const Process& process);

}  // namespace luaspy
