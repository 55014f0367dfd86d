#include "system/page_scan.h"

#include <sys/ioctl.h>

#include <algorithm>

namespace luaspy::system {
namespace {

// linux/fs.h of Linux 6.7; older headers do not have it.
struct ScanArgument {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted, category_mask,
      category_anyof_mask, return_mask;
};
constexpr std::uint64_t is_present = 1 << 3, is_swapped = 1 << 4;  // PAGE_IS_PRESENT, PAGE_IS_SWAPPED
constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanArgument);

}  // namespace

Failure scan_pages(const FileDescriptor& pagemap, const AddressRange& range, std::span<PageRun> runs,
                   std::size_t& count, Address& next) {
  ScanArgument argument{};
  argument.size = sizeof argument;
  argument.start = range.start, argument.end = range.end;
  argument.vec = reinterpret_cast<std::uint64_t>(runs.data());
  argument.vec_len = runs.size();
  argument.category_anyof_mask = argument.return_mask = is_present | is_swapped;
  int found = 0;
  if (const Failure failure = control(pagemap, pagemap_scan, &argument, found)) return failure;
  count = std::min(static_cast<std::size_t>(found), runs.size());
  next = argument.walk_end;
  return {0};
}

}  // namespace luaspy::system
