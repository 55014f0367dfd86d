#pragma once
// For a walk upwards through memory, from header to header. It reads pages ahead, but only where
// headers follow each other closely: a read of a page that the target has never used makes the
// kernel map a page of zeros there.

#include <algorithm>
#include <vector>

#include "base/memory.h"

namespace luaspy {

class ForwardReader {
 public:
  // `memory` must outlive it.
  explicit ForwardReader(const Memory& memory) : memory_(memory) {}

  bool read(Address address, std::span<std::byte> into) {
    if (address < start_ || address - start_ > bytes_.size() || bytes_.size() - (address - start_) < into.size()) {
      if (!fill(address, into.size())) return memory_.read(address, into);
    }
    std::memcpy(into.data(), bytes_.data() + (address - start_), into.size());
    return true;
  }
  template <typename T>
  bool get(Address address, T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return read(address, std::as_writable_bytes(std::span(&value, 1)));
  }

 private:
  static constexpr std::size_t page_size = smallest_page, most = 64 << 10;

  // False if the pages cannot be read as a whole.
  bool fill(Address address, std::size_t size) {
    const Address page = page_start(address);
    const std::size_t needed = (address - page + size + page_size - 1) / page_size * page_size;
    const bool is_next = page >= start_ && page <= start_ + bytes_.size();
    ahead_ = is_next ? std::min(2 * ahead_, most) : page_size;
    if (needed > most) return false;
    for (const std::size_t wanted : {std::max(ahead_, needed), needed}) {
      bytes_.resize(wanted);
      start_ = page;
      if (memory_.read(page, bytes_)) return true;
    }
    bytes_.clear();
    return false;
  }

  const Memory& memory_;
  Address start_ = 0;
  std::vector<std::byte> bytes_;
  std::size_t ahead_ = page_size;
};

}  // namespace luaspy
