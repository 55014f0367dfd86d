#pragma once
// Debug files from debuginfod servers, which give stripped programs their symbols. luaspy opens no
// connection itself: elfutils' debuginfod-find does, and keeps what it has fetched.

#include <cstdint>

#include "base/result.h"

namespace luaspy {

class Process;

// From now on, debug files that are not installed are fetched when the symbols of their program are
// needed, and waited for, which may take seconds. An error if that cannot work.
Result<void> use_debuginfod();

// After use_debuginfod(): fetches those of a process at once, so that nothing waits for them later.
void fetch_debug_files(const Process& process);

// From now on nothing waits for them: a recording would lose its samples meanwhile. Until a file has come, its program
// has the symbols that it has itself. Does nothing without use_debuginfod().
void fetch_debug_files_later();
// How many have come since then: then symbols have to be read again (StackReader::read_symbols_again()).
std::uint64_t debug_files_come();

}  // namespace luaspy
