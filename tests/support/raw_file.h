#pragma once
// Raw recordings made by hand (docs/raw-format.md).

#include <zlib.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/varint.h"
#include "profile/raw_format.h"

namespace luaspy {

inline std::string u32(std::size_t number) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

inline std::string raw_head(std::uint8_t version = raw::version) {
  return std::string(raw::magic) + static_cast<char>(version);
}

inline std::string raw_block(std::string_view payload) {
  return u32(payload.size()) +
         u32(crc32(0, reinterpret_cast<const Bytef*>(payload.data()), static_cast<uInt>(payload.size()))) +
         std::string(payload);
}

// A text within a record.
inline std::string raw_text(std::string_view text) {
  std::string bytes;
  put_varint(bytes, text.size());
  return bytes.append(text);
}

inline std::string raw_record(std::uint8_t type, std::string_view body) {
  return static_cast<char>(type) + raw_text(body);
}

}  // namespace luaspy
