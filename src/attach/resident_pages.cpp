#include "attach/resident_pages.h"

#include "attach/page_map.h"
#include "base/resident_memory.h"

namespace luaspy {

std::vector<AddressRange> resident_pages(const Process& process, const std::function<bool(const Mapping&)>& wanted) {
  std::vector<AddressRange> resident;
  const auto add = [&](Address start, Address end) {
    if (!resident.empty() && resident.back().end == start) resident.back().end = end;
    else resident.push_back({start, end});
  };
  const PageMap map(process.pid());
  const AddressSpace space = process.address_space();
  for (const Mapping& mapping : space.mappings()) {
    if (!wanted(mapping)) continue;
    Address known = mapping.start;
    const bool all = map.visit({mapping.start, mapping.end},
                               [&](Address first, std::span<const std::uint64_t> entries) {
                                 for (std::size_t i = 0; i < entries.size(); ++i) {
                                   const Address page = first + i * page_bytes;
                                   if ((entries[i] & (PageMap::present | PageMap::swapped)) != 0)
                                     add(page, page + page_bytes);
                                 }
                                 known = first + entries.size() * page_bytes;
                               });
    if (!all) add(known, mapping.end);
  }
  return resident;
}

}  // namespace luaspy
