#include "base/json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace luaspy {
namespace {

// Code points above U+FFFF become two surrogates (RFC 8259, section 7).
std::string by_number(std::uint32_t code) {
  if (code <= 0xffff) return fmt::format("\\u{:04x}", code);
  return fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
}

std::string escaped(std::string_view text, bool in_html) {
  constexpr std::string_view special = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
  const auto is_plain = [&](char c) {
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && !(in_html && (c == '<' || c == '>' || c == '&'));
  };
  std::string result = "\"";
  while (true) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return result + '"';
    const auto [length, known] = first_character(text);
    const std::uint32_t code = known.value_or(U'\ufffd');
    if (const std::size_t at = special.find(text[0]); at != special.npos) result += {'\\', letters[at]};
    else if (code < ' ' || in_html) result += by_number(code);
    else result += known ? text.substr(0, length) : "\ufffd";
    text.remove_prefix(length);
  }
}

}  // namespace

std::string json_text(std::string_view text) { return escaped(text, false); }

std::string json_in_html(std::string_view text) { return escaped(text, true); }

}  // namespace luaspy
