#pragma once
// Reads DWARF data one value after the other. Reads beyond the end give 0, and good() is false from
// then on.

#include <span>

#include "base/memory.h"

namespace luaspy {

class EncodedBytes {
 public:
  // `at`: the address of the first byte.
  explicit EncodedBytes(std::span<const std::byte> bytes, Address at = 0) : bytes_(bytes), at_(at) {}

  bool good() const { return good_; }
  bool empty() const { return bytes_.empty(); }
  Address at() const { return at_; }
  std::span<const std::byte> rest() const { return bytes_; }

  template <typename T>
  T read() {
    const std::span<const std::byte> bytes = skip(sizeof(T));
    return bytes.size() == sizeof(T) ? load<T>(bytes, 0) : T{};
  }
  std::span<const std::byte> skip(std::uint64_t size) {
    if (size > bytes_.size()) good_ = false, size = 0;
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    at_ += size;
    return taken;
  }
  // DWARF 5, 7.6. Bits beyond 64 are lost.
  std::uint64_t uleb() {
    unsigned shift = 0;
    return leb(shift);
  }
  std::int64_t sleb() {
    unsigned shift = 0;
    std::uint64_t value = leb(shift);
    if (shift < 64 && (last_ & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }

 private:
  std::uint64_t leb(unsigned& shift) {
    std::uint64_t value = 0;
    do {
      last_ = read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{last_ & 0x7fU} << shift, shift += 7;
    } while (good_ && (last_ & 0x80) != 0);
    return value;
  }

  std::span<const std::byte> bytes_;
  Address at_;
  std::uint8_t last_ = 0;  // of the number
  bool good_ = true;
};

}  // namespace luaspy
