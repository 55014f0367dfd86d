#pragma once
// Which memory of a live process is resident, from /proc/PID/smaps and /proc/PID/pagemap. Nothing
// is stopped and no memory of the target is read.

#include <span>
#include <vector>

#include "base/resident_memory.h"
#include "base/result.h"
#include "system/calls.h"

namespace luaspy {

struct PageEntry {
  Address page = 0;
  std::uint64_t word = 0;  // page_map.h
};

// Adds the resident pages of a mapping to memory.pages. `entries`: of all its pages that are in memory or
// in swap space, ascending.
//
// smaps does not count the page of zeros that is mapped where a process has only read; pagemap
// shows it as present, and as neither exclusive nor of a file. A page shared with another process
// after fork(2) looks the same. If there are more pages than smaps counts, so many of these are
// left out, the lowest first.
void add_pages(ResidentMemory& memory, ResidentMapping& mapping, std::span<const PageEntry> entries);

// Takes some ms for each GB: the kernel looks at every page. What changes meanwhile may make the
// pages fewer than smaps says, never more. After `until`, no more pages are asked for: of the mappings
// left, only how many they are is known. Errors: the process has ended, luaspy may not look at
// it, or the kernel has no smaps (CONFIG_PROC_PAGE_MONITOR).
Result<ResidentMemory> read_resident_memory(pid_t pid,
                                            system::Clock::time_point until = system::Clock::time_point::max());

}  // namespace luaspy
