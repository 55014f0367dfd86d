#pragma once
// A .luaheap file: a snapshot, to be looked at later. It contains the memory that an analysis reads,
// page by page, so that everything that can be asked of a live process can be asked of the file.
//
//   luaspy heap 1⏎                      the format and its version
//   {"pid": …, "states": …, "ranges": …}⏎   what HeapSnapshot says, as JSON
//   gzip stream                         the bytes of all ranges, one after the other
//
// Reading treats it as untrusted input.

#include <ostream>
#include <string>

#include "base/result.h"
#include "heap/heap_snapshot.h"
#include "heap/memory_image.h"

namespace luaspy {

// Memory that remembers which pages were read.
class UsedPages : public Memory {
 public:
  static constexpr Address page_size = smallest_page;

  // `image` must outlive it.
  explicit UsedPages(const MemoryImage& image);
  bool read(Address address, std::span<std::byte> into) const override;
  void prefetch(Address address, std::size_t size) const override { use(address, size); }
  // The parts of the image that were used: whole pages.
  std::vector<AddressRange> ranges() const;

 private:
  void use(Address address, std::uint64_t size) const;

  const MemoryImage& image_;
  mutable std::vector<std::vector<bool>> used_;  // by part, by page
  mutable std::size_t last_ = 0;
};

void write_heap_file(std::ostream& out, const HeapSnapshot& snapshot, const std::vector<AddressRange>& ranges);
Result<HeapSnapshot> read_heap_file(const std::string& path);

}  // namespace luaspy
