#include "unwind/xz_size.h"

#include <algorithm>
#include <array>

namespace luaspy {
namespace {

// Reads numbers at a position that cannot leave the bytes: beyond their end it reads 0, and `ended`
// is set.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ended() const { return ended_; }
  std::size_t at() const { return at_; }
  unsigned byte() {
    if (at_ >= bytes_.size()) ended_ = true;
    return ended_ ? 0 : std::to_integer<unsigned>(bytes_[at_++]);
  }
  std::uint64_t big_endian_16() {
    const unsigned high = byte();
    return high << 8 | byte();
  }
  // Section 1.2: 7 bits in each byte, the lowest first.
  std::uint64_t multibyte() {
    constexpr unsigned most_bits = 63;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < most_bits; shift += 7) {
      const unsigned next = byte();
      value |= std::uint64_t{next & 0x7f} << shift;
      if ((next & 0x80) == 0) return value;
    }
    ended_ = true;
    return 0;
  }
  void skip(std::uint64_t count) {
    if (count > bytes_.size() - at_) ended_ = true;
    else at_ += count;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

// A block's header (section 3.1), after its first byte. Filters before LZMA2 (for machine code,
// differences) do not change the size.
bool skip_block_header(Cursor& cursor, std::size_t end) {
  constexpr std::uint64_t lzma2 = 0x21;
  const unsigned flags = cursor.byte();
  const unsigned filters = (flags & 3) + 1;
  if ((flags & 0x40) != 0) cursor.multibyte();
  if ((flags & 0x80) != 0) cursor.multibyte();
  std::uint64_t last = 0;
  for (unsigned i = 0; i < filters; ++i) {
    last = cursor.multibyte();
    cursor.skip(cursor.multibyte());
  }
  if (cursor.ended() || last != lzma2 || cursor.at() > end) return false;
  cursor.skip(end - cursor.at());
  return true;
}

// LZMA2 (liblzma, lzma2_decoder.c): 0 ends the data; 1 and 2 start uncompressed bytes; from 0x80
// on, the lower bits are the highest bits of the size. New properties take one more byte.
std::uint64_t chunks_size(Cursor& cursor) {
  std::uint64_t size = 0;
  while (!cursor.ended()) {
    const unsigned control = cursor.byte();
    if (control == 0) break;
    if (control < 0x80) {
      const std::uint64_t plain = cursor.big_endian_16() + 1;
      size += plain;
      cursor.skip(plain);
      continue;
    }
    size += (std::uint64_t{control & 0x1f} << 16) + cursor.big_endian_16() + 1;
    const std::uint64_t packed = cursor.big_endian_16() + 1;
    cursor.skip(packed + (control >= 0xc0 ? 1 : 0));
  }
  return size;
}

}  // namespace

std::optional<std::uint64_t> unpacked_size(std::span<const std::byte> xz) {
  constexpr std::array<unsigned, 6> magic = {0xfd, '7', 'z', 'X', 'Z', 0};
  constexpr std::array<std::uint64_t, 16> check_sizes = {0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64};
  Cursor cursor(xz);
  const bool is_xz = std::ranges::all_of(magic, [&](unsigned byte) { return cursor.byte() == byte; });
  cursor.byte();
  const unsigned check = cursor.byte() & 0xf;
  cursor.skip(4);  // the CRC of these two
  if (!is_xz || cursor.ended()) return std::nullopt;
  std::uint64_t size = 0;
  while (true) {
    const std::size_t start = cursor.at();
    const unsigned words = cursor.byte();
    if (words == 0) break;  // the index
    if (!skip_block_header(cursor, start + 4 * (std::size_t{words} + 1))) return std::nullopt;
    size += chunks_size(cursor);
    cursor.skip(-cursor.at() % 4);
    cursor.skip(check_sizes[check]);
    if (cursor.ended()) return std::nullopt;
  }
  return cursor.ended() ? std::nullopt : std::optional(size);
}

}  // namespace luaspy
