#pragma once
// Reads messages in protobuf's wire format (protobuf.dev/programming-guides/encoding), whose bytes are not trusted.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/varint.h"

namespace luaspy {

// The fields of one message, one after another. Each message in it is another reader of field().bytes: a message that
// holds itself ever deeper is read no deeper than its reader goes.
class ProtobufFields {
 public:
  struct Field {
    std::uint32_t number = 0;
    bool is_bytes = false;     // a string, a message, or packed numbers; else a number
    std::uint64_t value = 0;   // of a number
    std::string_view bytes{};  // within those that were given
    std::int64_t signed_value() const { return static_cast<std::int64_t>(value); }
    // Of an index or another small number; too large ones are the largest.
    std::uint32_t index() const { return value > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(value); }
  };

  explicit ProtobufFields(std::string_view message) : all_(message), rest_(message) {}

  // nullopt: there are no more, or torn().
  std::optional<Field> next() {
    if (rest_.empty() || torn_) return std::nullopt;
    start_ = all_.size() - rest_.size();
    const std::optional<std::uint64_t> tag = varint();
    Field field;
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > UINT32_MAX) return damaged();
    field.number = static_cast<std::uint32_t>(*tag >> 3);
    switch (*tag & 7) {
      case 0: {
        const std::optional<std::uint64_t> value = varint();
        if (!value) return damaged();
        field.value = *value;
        return field;
      }
      case 1:
      case 5: {
        const std::size_t size = (*tag & 7) == 1 ? 8 : 4;
        if (rest_.size() < size) return damaged();
        for (std::size_t i = size; i > 0; --i) field.value = field.value << 8 | static_cast<std::uint8_t>(rest_[i - 1]);
        rest_.remove_prefix(size);
        return field;
      }
      case 2: {
        const std::optional<std::uint64_t> size = varint();
        if (!size || *size > rest_.size()) return damaged();
        field.is_bytes = true, field.bytes = rest_.substr(0, static_cast<std::size_t>(*size));
        rest_.remove_prefix(field.bytes.size());
        return field;
      }
      default:
        return damaged();
    }
  }

  // Whether a field is cut off, or is none; and where that field begins, in bytes.
  bool torn() const { return torn_; }
  // Where the field that was read last begins.
  std::size_t offset() const { return start_; }

 private:
  std::optional<std::uint64_t> varint() {
    auto next = rest_.begin();
    const std::optional<std::uint64_t> number = read_varint(next, rest_.end());
    rest_.remove_prefix(static_cast<std::size_t>(next - rest_.begin()));
    return number;
  }
  std::optional<Field> damaged() { return torn_ = true, std::nullopt; }

  std::string_view all_, rest_;
  std::size_t start_ = 0;
  bool torn_ = false;
};

// A repeated number, which may be packed: adds what the field has. False if it is damaged.
inline bool add_numbers(const ProtobufFields::Field& field, std::vector<std::uint64_t>& to) {
  if (!field.is_bytes) return to.push_back(field.value), true;
  for (auto next = field.bytes.begin(); next != field.bytes.end();) {
    const std::optional<std::uint64_t> number = read_varint(next, field.bytes.end());
    if (!number) return false;
    to.push_back(*number);
  }
  return true;
}

}  // namespace luaspy
