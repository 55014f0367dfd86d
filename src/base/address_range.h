#pragma once
// Parts of an address space, and what two lists of them have in common.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"

namespace luaspy {

struct AddressRange {
  Address start = 0, end = 0;  // [start, end)
  std::uint64_t size() const { return end - start; }
  bool contains(Address address) const { return address >= start && address < end; }
  bool operator==(const AddressRange&) const = default;
};

// Sorts the ranges and joins those that touch or overlap. Returns how many bytes were in two of
// them. Empty ranges are dropped.
inline std::uint64_t sort_and_join(std::vector<AddressRange>& ranges) {
  std::erase_if(ranges, [](const AddressRange& range) { return range.start >= range.end; });
  std::ranges::sort(ranges, {}, &AddressRange::start);
  std::uint64_t twice = 0;
  std::size_t count = 0;
  for (const AddressRange& range : ranges) {
    if (count == 0 || range.start > ranges[count - 1].end) {
      ranges[count++] = range;
      continue;
    }
    AddressRange& last = ranges[count - 1];
    twice += std::min(last.end, range.end) - range.start;
    last.end = std::max(last.end, range.end);
  }
  ranges.resize(count);
  return twice;
}

// What is in both lists, which have to be ascending and disjoint; so is the result.
inline std::vector<AddressRange> common_parts(std::span<const AddressRange> some,
                                              std::span<const AddressRange> others) {
  std::vector<AddressRange> parts;
  for (std::size_t i = 0, k = 0; i < some.size() && k < others.size();) {
    const Address start = std::max(some[i].start, others[k].start), end = std::min(some[i].end, others[k].end);
    if (start < end) parts.push_back({start, end});
    if (some[i].end < others[k].end) ++i;
    else ++k;
  }
  return parts;
}

inline std::uint64_t total_bytes(std::span<const AddressRange> ranges) {
  std::uint64_t bytes = 0;
  for (const AddressRange& range : ranges) bytes += range.size();
  return bytes;
}

// Bytes that are in both lists, which have to be ascending and disjoint.
inline std::uint64_t common_bytes(std::span<const AddressRange> some, std::span<const AddressRange> others) {
  return total_bytes(common_parts(some, others));
}

// The parts of `ranges` that are not in `others`. Both lists have to be ascending and disjoint; so
// is the result.
inline std::vector<AddressRange> without(std::span<const AddressRange> ranges, std::span<const AddressRange> others) {
  std::vector<AddressRange> left;
  std::size_t k = 0;
  for (AddressRange range : ranges) {
    while (k < others.size() && others[k].end <= range.start) ++k;
    for (std::size_t i = k; i < others.size() && others[i].start < range.end; ++i) {
      if (others[i].start > range.start) left.push_back({range.start, others[i].start});
      range.start = std::max(range.start, std::min(others[i].end, range.end));
    }
    if (range.start < range.end) left.push_back(range);
  }
  return left;
}

// The range that has the address; nullptr if none has it. The list has to be ascending and
// disjoint.
inline const AddressRange* find_range(std::span<const AddressRange> ranges, Address address) {
  const auto after = std::ranges::upper_bound(ranges, address, {}, &AddressRange::start);
  if (after == ranges.begin()) return nullptr;
  const AddressRange& range = *std::prev(after);
  return range.contains(address) ? &range : nullptr;
}

}  // namespace luaspy
