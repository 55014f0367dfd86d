#pragma once
// Which memory of a process is resident: in RAM and mapped, as /proc counts it.

#include <vector>

#include "base/address_range.h"
#include "base/address_space.h"

namespace luaspy {

// A mapping and what /proc/PID/smaps says of it (proc(5)). Bytes.
struct ResidentMapping {
  Mapping mapping;
  std::uint64_t rss = 0;        // resident, never more than the mapping's size
  std::uint64_t pss = 0;        // resident, each page divided by the number of processes that map it
  std::uint64_t swap = 0;       // moved to swap
  std::uint64_t anonymous = 0;  // of rss: not pages of a file
  std::uint64_t shared_clean = 0, shared_dirty = 0, private_clean = 0, private_dirty = 0;
  bool not_reserved = false, not_dumped = false;  // MAP_NORESERVE; MADV_DONTDUMP
  // Which of its pages are resident is in ResidentMemory::pages. False: only how many.
  bool pages_known = false;
};

struct ResidentMemory {
  std::uint64_t page_bytes = smallest_page;  // the size of the pages of the kernel that the process runs on
  std::vector<ResidentMapping> mappings;     // ascending, disjoint
  // The resident pages of all mappings whose pages are known, joined where they touch; ascending
  // and disjoint. In no mapping there are more of them than its rss says.
  std::vector<AddressRange> pages;

  std::uint64_t rss() const {
    std::uint64_t bytes = 0;
    for (const ResidentMapping& mapping : mappings) bytes += mapping.rss;
    return bytes;
  }
  std::uint64_t swap() const {
    std::uint64_t bytes = 0;
    for (const ResidentMapping& mapping : mappings) bytes += mapping.swap;
    return bytes;
  }
  AddressSpace address_space() const {
    std::vector<Mapping> all;
    for (const ResidentMapping& mapping : mappings) all.push_back(mapping.mapping);
    return AddressSpace(std::move(all));
  }
  // Private memory that the program may have got by mmap(2), without what is in `taken`; ascending
  // and disjoint. `taken` has to be so, too.
  std::vector<AddressRange> anonymous_memory(std::span<const AddressRange> taken) const {
    std::vector<AddressRange> ranges;
    for (const ResidentMapping& one : mappings) {
      if (one.mapping.is_anonymous() && one.mapping.readable && one.mapping.writable && one.rss != 0)
        ranges.push_back({one.mapping.start, one.mapping.end});
    }
    sort_and_join(ranges);
    return without(ranges, taken);
  }
  // Calls `visit` for each resident page of `range`, whose start is one of a page, from the lowest
  // on. It returns the address to go on from, a page's start above the page, or 0 to end.
  template <typename Visit>
  void visit_pages(const AddressRange& range, const Visit& visit) const {
    auto run = std::ranges::upper_bound(pages, range.start, {}, &AddressRange::end);
    for (Address page = range.start; page != 0 && page < range.end;) {
      while (run != pages.end() && run->end <= page) ++run;
      if (run == pages.end()) return;
      page = std::max(page, run->start);
      if (page < range.end) page = visit(page);
    }
  }
  // Of ranges that are ascending and disjoint: how many bytes of them are in resident pages.
  std::uint64_t resident_bytes(std::span<const AddressRange> ranges) const { return common_bytes(ranges, pages); }
};

}  // namespace luaspy
