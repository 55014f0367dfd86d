#pragma once
// Numbers of 7 bits a byte, the lowest first, all but the last byte with the high bit set (LEB128,
// as in protobuf): small ones take little room.

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

// `next` moves on. nullopt: the bytes end within the number, or it has more than the ten of the
// largest one.
template <typename Iterator>
std::optional<std::uint64_t> take_varint(Iterator& next, Iterator end) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && next != end; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(*next++);
    number |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return number;
  }
  return std::nullopt;
}

}  // namespace luaspy
