#pragma once
// Numbers for addresses.

#include <cstdint>
#include <span>
#include <vector>

#include "heap/heap_analysis.h"

namespace luaspy {

// The ids of objects in a .heapsnapshot: an odd number that depends on its address alone, so that the
// same object has the same one in later snapshots. Addresses that differ by a multiple of 16 GiB
// would have the same number, so each 16 GiB of addresses get a place among the numbers where that
// does not happen. There is none for heaps that spread over more than 16 GiB: then two objects may
// have the same id.
class HeapsnapshotIds {
 public:
  static constexpr std::uint32_t root = 1;

  // `used`: all addresses that will have an id.
  explicit HeapsnapshotIds(std::span<const Address> used);
  explicit HeapsnapshotIds(std::span<const HeapAnalysis* const> analyses);
  std::uint32_t of(Address address) const;

 private:
  // 16 GiB of addresses.
  struct Window {
    Address number = 0;                 // of the window
    std::uint32_t first = 0, last = 0;  // that are used of its numbers
    std::uint32_t shift = 0;
  };
  void use(Address address);
  void place();

  std::vector<Window> windows_;
};

}  // namespace luaspy
