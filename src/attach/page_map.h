#pragma once
// /proc/PID/pagemap: which pages of a process have contents, and a word for each page
// (Documentation/admin-guide/mm/pagemap.rst).

#include <cstdint>
#include <functional>
#include <span>

#include "base/address_range.h"
#include "base/file_descriptor.h"
#include "system/calls.h"

namespace luaspy {

// How much may be asked. What is not known when it is used up stays unknown.
struct PageWork {
  // Words read one by one, where the kernel has no PAGEMAP_SCAN (before Linux 6.7): it has one for each
  // page, mapped or not. 64 GiB of addresses; some 70 ms if most pages do not exist.
  std::uint64_t words = 1 << 24;
  system::Clock::time_point until = system::Clock::time_point::max();
};

class PageMap {
 public:
  static constexpr std::uint64_t present = std::uint64_t{1} << 63, swapped = std::uint64_t{1} << 62,
                                 of_file = std::uint64_t{1} << 61, exclusive = std::uint64_t{1} << 56;

  // `words`: as on a kernel without PAGEMAP_SCAN. If the process executes another program later, this
  // still shows the old one, which then has no pages.
  enum class Ask { scan, words };
  explicit PageMap(pid_t pid, Ask ask = Ask::scan);

  std::uint64_t page_bytes() const { return page_; }  // for each of which the file has a word

  // False: the kernel has no such file, or luaspy may not read it.
  bool exists() const { return static_cast<bool>(file_); }

  // Visits runs of pages of `range`, which begins and ends with a page, that are in memory or in swap
  // space: ascending and disjoint. False if the kernel does not tell all of them, or `work` is not
  // enough; what was used of it is taken off.
  bool visit_contents(const AddressRange& range, PageWork& work,
                      const std::function<void(const AddressRange& run)>& visit) const;

  // Visits the entries of whole pages, in order and in pieces; `first`: the address of the first
  // page of a piece. False if the kernel does not tell all of them.
  bool visit(const AddressRange& range,
             const std::function<void(Address first, std::span<const std::uint64_t> entries)>& visit) const;

 private:
  bool scan(const AddressRange& range, const PageWork& work,
            const std::function<void(const AddressRange& run)>& visit) const;

  std::uint64_t page_;  // bytes
  FileDescriptor file_;
  bool can_scan_ = false;
};

}  // namespace luaspy
