#pragma once
// Which pages of a process are in memory or in swap space. A page that was never written need not
// be copied; reading it would make the kernel add it to the process's page tables.

#include <functional>
#include <vector>

#include "attach/page_map.h"
#include "base/address_range.h"
#include "base/address_space.h"

namespace luaspy {

class ResidentPages {
 public:
  // `pid`'s, whose mappings `space` are. Looks for a sanitizer's shadow among them, if some are as large
  // as one (/proc/PID/smaps).
  ResidentPages(pid_t pid, const AddressSpace& space, PageMap::Ask ask = PageMap::Ask::scan);

  struct Found {
    std::vector<AddressRange> ranges;  // ascending and disjoint
    std::uint64_t unknown_bytes = 0;   // of mappings that are not in `ranges`, as nobody knows which pages they have
  };
  // Those of the mappings that `wanted` chooses, except for shadows. Where the kernel has no pagemap, small
  // mappings are taken as a whole. `work`: the smallest mappings are asked for first.
  Found find(const AddressSpace& space, const std::function<bool(const Mapping&)>& wanted, PageWork work = {}) const;

  // The parts of a mapping that are shadows are these.
  const std::vector<AddressRange>& shadows() const { return shadows_; }

 private:
  PageMap map_;
  std::vector<AddressRange> shadows_;  // ascending and disjoint
};

// The mappings that may hold objects of Lua, cut to their resident pages.
AddressSpace contents_of(pid_t pid, const AddressSpace& space);

}  // namespace luaspy
