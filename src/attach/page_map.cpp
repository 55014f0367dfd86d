#include "attach/page_map.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "attach/process.h"
#include "base/resident_memory.h"
#include "system/calls.h"

namespace luaspy {

PageMap::PageMap(pid_t pid) : file_(system::open_file(fmt::format("/proc/{}/pagemap", living_thread(pid)), O_RDONLY)) {}

bool PageMap::visit(const AddressRange& range,
                    const std::function<void(Address first, std::span<const std::uint64_t> entries)>& visit) const {
  constexpr std::uint64_t at_once = 1 << 16;  // pages
  if (!file_) return range.size() == 0;
  std::vector<std::uint64_t> entries(std::min(at_once, range.size() / page_bytes));
  for (Address at = range.start; at < range.end;) {
    const auto wanted = std::span(entries).first(std::min((range.end - at) / page_bytes, at_once));
    bool is_gone = false;
    const std::size_t bytes = system::read_some_at(file_, at / page_bytes * sizeof(std::uint64_t),
                                                   std::as_writable_bytes(wanted), is_gone);
    const std::size_t pages = bytes / sizeof(std::uint64_t);
    if (pages == 0) return false;
    visit(at, wanted.first(pages));
    at += pages * page_bytes;
  }
  return true;
}

}  // namespace luaspy
