#pragma once
// /proc/PID/pagemap: a word for each page of a process
// (Documentation/admin-guide/mm/pagemap.rst).

#include <cstdint>
#include <functional>
#include <span>

#include "base/address_range.h"
#include "base/file_descriptor.h"

namespace luaspy {

class PageMap {
 public:
  static constexpr std::uint64_t present = std::uint64_t{1} << 63, swapped = std::uint64_t{1} << 62,
                                 of_file = std::uint64_t{1} << 61, exclusive = std::uint64_t{1} << 56;

  // If the process executes another program later, this still shows the old one, which then has no
  // pages.
  explicit PageMap(pid_t pid);
  // Visits the entries of whole pages, in order and in pieces; `first`: the address of the first
  // page of a piece. False if the kernel does not tell all of them.
  bool visit(const AddressRange& range,
             const std::function<void(Address first, std::span<const std::uint64_t> entries)>& visit) const;

 private:
  FileDescriptor file_;
};

}  // namespace luaspy
