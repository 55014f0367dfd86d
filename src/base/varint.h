#pragma once
// Numbers with 7 bits per byte, lowest first; all bytes except the last have the high bit set
// (LEB128, as in protobuf). Small numbers take little space.

#include <cstdint>
#include <optional>

namespace luaspy {

// `bytes`: a container of bytes, which grows.
template <typename Bytes>
void put_varint(Bytes& bytes, std::uint64_t number) {
  using Byte = typename Bytes::value_type;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<Byte>(number | 0x80));
  bytes.push_back(static_cast<Byte>(number));
}

// Advances `next`. nullopt: the bytes end within the number, or it has more than ten bytes, the
// length of the largest one.
template <typename Iterator>
std::optional<std::uint64_t> read_varint(Iterator& next, Iterator end) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && next != end; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(*next++);
    number |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return number;
  }
  return std::nullopt;
}

}  // namespace luaspy
