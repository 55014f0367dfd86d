#pragma once
// Asks the kernel for the pages of a process that are in memory or in swap space (PAGEMAP_SCAN, since
// Linux 6.7: Documentation/admin-guide/mm/pagemap.rst). It takes time for page tables that exist, not
// for addresses: a mapping of terabytes without a page costs nothing.

#include <cstdint>
#include <span>

#include "base/address_range.h"
#include "base/file_descriptor.h"
#include "system/calls.h"

namespace luaspy::system {

// linux/fs.h, struct page_region
struct PageRun {
  std::uint64_t start = 0, end = 0, categories = 0;
};

// Fills `runs` with such runs of pages in `range`, ascending; neighbours may touch. `pagemap`: an open
// /proc/PID/pagemap. `count`: how many runs there are. `next`: where the kernel stopped, because `runs`
// is full, which may be before the end of the last run (Linux 6.18); range.end if it did not stop. An old
// kernel fails.
Failure scan_pages(const FileDescriptor& pagemap, const AddressRange& range, std::span<PageRun> runs,
                   std::size_t& count, Address& next);

}  // namespace luaspy::system
