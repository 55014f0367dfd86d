#pragma once
// Pages of a heap in less memory. Words of a heap are small numbers, zeros, pointers to what is
// nearby, and the same few values again and again, so a page takes some 40 % of its size. Packing
// takes some 2 µs a page, and unpacking 1 µs.
//
//   512 tags of 4 bits, one for each word    what the word needs, in order
//
// A page that would not become smaller is kept as it is.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory.h"

namespace luaspy {

class PackedPages {
 public:
  static constexpr std::size_t page_size = 4096;  // of a packed page: 512 words; no kernel's
  using Page = std::span<std::byte, page_size>;

  // Adds a page. `address`: where it is in the target; words that point near it become short.
  void add(Address address, std::span<const std::byte, page_size> page);
  // Unpacks the page that was added as number `index`, from 0 on. `address`: as it was added.
  void unpack(std::size_t index, Address address, Page into) const;

  std::size_t pages() const { return where_.size(); }
  std::size_t bytes() const { return bytes_; }  // that all pages take

 private:
  static constexpr std::size_t block_size = 1 << 20;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::size_t used_ = block_size;     // of the last block
  std::vector<std::uint64_t> where_;  // of each page: block * block_size + offset
  std::size_t bytes_ = 0;
};

}  // namespace luaspy
