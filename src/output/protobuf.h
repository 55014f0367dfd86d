#pragma once
// Messages in protobuf's wire format (protobuf.dev/programming-guides/encoding).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/varint.h"

namespace luaspy {

// Fields that are 0 or empty are not written, because that is the default.
class ProtobufMessage {
 public:
  enum WireType : unsigned { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5 };

  void add(int field, std::uint64_t number) {
    if (number != 0) add_always(field, static_cast<std::int64_t>(number));
  }
  void add(int field, std::int64_t number) { add(field, static_cast<std::uint64_t>(number)); }
  // A number whose presence means something (oneof).
  void add_always(int field, std::int64_t number) {
    tag(field, varint);
    put_varint(bytes_, static_cast<std::uint64_t>(number));
  }
  void add_fixed64(int field, std::uint64_t number) {
    tag(field, fixed64);
    put_fixed64(number);
  }
  void add(int field, std::string_view bytes) {
    tag(field, length_delimited);
    put_varint(bytes_, bytes.size());
    bytes_ += bytes;
  }
  void add(int field, const ProtobufMessage& message) { add(field, std::string_view(message.bytes_)); }
  void add(int field, std::span<const std::uint64_t> packed) {
    ProtobufMessage numbers;
    for (const std::uint64_t number : packed) put_varint(numbers.bytes_, number);
    add(field, numbers);
  }
  void add_fixed64(int field, std::span<const std::uint64_t> packed) {
    ProtobufMessage numbers;
    for (const std::uint64_t number : packed) numbers.put_fixed64(number);
    add(field, numbers);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, WireType type) { put_varint(bytes_, static_cast<std::uint64_t>(field) << 3 | type); }
  void put_fixed64(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(number >> (8 * i));
  }

  std::string bytes_;
};

}  // namespace luaspy
