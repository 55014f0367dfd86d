#pragma once
// The fields of a record of a raw recording, which are not trusted.

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/varint.h"
#include "profile/raw_format.h"

namespace luaspy {

inline constexpr std::uint64_t any_number = std::numeric_limits<std::int64_t>::max() / 4;  // leaves room for sums of
                                                                                           // a few
inline constexpr std::uint64_t any_int = std::numeric_limits<int>::max();

// After a number that is missing or too large, good() stays false.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  bool good() const { return good_; }
  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }  // bytes
  std::uint64_t number(std::uint64_t most = any_number) {
    if (!good_) return 0;
    auto next = bytes_.begin();
    const std::optional<std::uint64_t> number = read_varint(next, bytes_.end());
    bytes_.remove_prefix(static_cast<std::size_t>(next - bytes_.begin()));
    return number && *number <= most ? *number : bad();
  }
  std::int64_t signed_number() { return static_cast<std::int64_t>(number()); }
  int small_number() { return static_cast<int>(number(any_int)); }
  // An index into something of size `size`.
  std::uint32_t index(std::size_t size) {
    return size == 0 ? static_cast<std::uint32_t>(bad()) : static_cast<std::uint32_t>(number(size - 1));
  }
  std::string_view bytes(std::size_t count) {
    if (!good_ || count > bytes_.size()) return bad(), std::string_view();
    const std::string_view bytes = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return bytes;
  }
  std::string_view text() { return bytes(number(raw::longest_string)); }
  std::string_view rest() { return bytes(bytes_.size()); }

 private:
  std::uint64_t bad() { return good_ = false, 0; }

  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace luaspy
