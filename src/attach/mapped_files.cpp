#include "attach/mapped_files.h"

#include <unistd.h>

#include <algorithm>

#include "attach/process.h"

namespace luaspy {

bool MappedFiles::read(Address address, std::span<std::byte> into) const {
  const Mapping* const mapping = space_.find(address);
  if (mapping == nullptr || mapping->inode == 0 || into.size() > mapping->end - address) return false;
  if (mapping != mapping_) file_ = open_mapped(pid_, *mapping), mapping_ = mapping;
  if (!file_) return memory_.read(address, into);
  const ssize_t count = ::pread(file_.number(), into.data(), into.size(),
                                static_cast<off_t>(mapping->offset + (address - mapping->start)));
  if (count < 0) return false;
  std::ranges::fill(into.subspan(static_cast<std::size_t>(count)), std::byte{0});
  return true;
}

}  // namespace luaspy
