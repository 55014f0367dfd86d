#pragma once
// Memory that keeps the pages that were read through it, for many small reads of neighbouring
// objects. Where a page cannot be read as a whole, the bytes that were asked for are.

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/memory.h"

namespace luaspy {

class PageCache : public Memory {
 public:
  // `from` must outlive it.
  explicit PageCache(const Memory& from) : from_(from) {}

  bool read(Address address, std::span<std::byte> into) const override {
    while (!into.empty()) {
      const std::size_t offset = address % page_size;
      const auto piece = into.first(std::min(into.size(), page_size - offset));
      const std::byte* const page = find(address - offset);
      if (page != nullptr) std::memcpy(piece.data(), page + offset, piece.size());
      else if (!from_.read(address, piece)) return false;
      address += piece.size();
      into = into.subspan(piece.size());
    }
    return true;
  }

 private:
  static constexpr std::size_t page_size = smallest_page, most_pages = 1 << 13;

  const std::byte* find(Address page) const {
    if (page == last_page_ && last_ != nullptr) return last_;
    auto found = pages_.find(page);
    if (found == pages_.end()) {
      if (pages_.size() >= most_pages) return nullptr;
      auto bytes = std::make_unique_for_overwrite<std::byte[]>(page_size);
      if (!from_.read(page, {bytes.get(), page_size})) bytes.reset();
      found = pages_.emplace(page, std::move(bytes)).first;
    }
    last_page_ = page;
    return last_ = found->second.get();
  }

  const Memory& from_;
  mutable std::unordered_map<Address, std::unique_ptr<std::byte[]>> pages_;  // nullptr: cannot be read as a whole
  mutable Address last_page_ = 0;
  mutable const std::byte* last_ = nullptr;
};

}  // namespace luaspy
