#include "text.h"

#include <fmt/format.h>

namespace luaspy {
namespace {

// Length of the well-formed UTF-8 sequence at the front (Unicode 15, table 3-7); 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) return 0;
  return length;
}

// C0 and C1 controls and DEL: what a terminal could obey.
bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return sequence.size() == 2 && first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  result.reserve(std::min(text.size(), limit));
  const std::size_t whole = text.size();
  for (std::size_t used = 0; used < limit && !text.empty();) {
    const std::size_t length = sequence_length(text);
    if (length != 0 && !is_control(text.substr(0, length))) {
      result += text.substr(0, length);
    } else {
      for (std::size_t i = 0; i < std::max<std::size_t>(length, 1); ++i) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    }
    used += std::max<std::size_t>(length, 1);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  if (whole > limit && !text.empty()) result += "...";
  return result;
}

}  // namespace luaspy
