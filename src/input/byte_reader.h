#pragma once
// A binary stream, read number by number; its bytes are not trusted.

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

namespace luaspy {

class ByteReader {
 public:
  explicit ByteReader(std::istream& in) : in_(*in.rdbuf()) {}

  // nullopt: the stream has ended.
  std::optional<std::uint8_t> byte() {
    const int c = in_.sbumpc();
    if (c == std::char_traits<char>::eof()) return std::nullopt;
    ++offset_;
    return static_cast<std::uint8_t>(c);
  }
  // As in base/varint.h. nullopt: the stream has ended, or the number has more than ten bytes.
  std::optional<std::uint64_t> number() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::optional<std::uint8_t> next = byte();
      if (!next) return std::nullopt;
      number |= std::uint64_t{*next & 0x7fU} << shift;
      if ((*next & 0x80) == 0) return number;
    }
    return std::nullopt;
  }
  std::optional<std::string> bytes(std::uint64_t count, std::uint64_t most) {
    if (count > most) return std::nullopt;
    std::string bytes(static_cast<std::size_t>(count), '\0');
    if (static_cast<std::uint64_t>(in_.sgetn(bytes.data(), static_cast<std::streamsize>(count))) != count)
      return std::nullopt;
    offset_ += static_cast<std::int64_t>(count);
    return bytes;
  }

  // How many bytes were read.
  std::int64_t offset() const { return offset_; }

 private:
  std::streambuf& in_;
  std::int64_t offset_ = 0;
};

}  // namespace luaspy
