#include "base/text.h"

#include <fmt/format.h>

#include <type_traits>

namespace luaspy {
namespace {

// C0 and C1 controls and DEL, which a terminal could obey.
bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

// Removes the first character from `text` and adds it to `result`, made printable. A text may be all of a file.
void move_printable(std::string_view& text, std::string& result) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto [length, code] = first_character(text);
  if (code && is_invisible(*code)) {
    result += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(*code));
  } else if (code && !is_control(*code)) {
    result += text.substr(0, length);
  } else {
    for (const char c : text.substr(0, length))
      result += {'\\', 'x', digits[static_cast<unsigned char>(c) >> 4], digits[static_cast<unsigned char>(c) & 0xf]};
  }
  text.remove_prefix(length);
}

// How many bytes at the end of `text` begin a UTF-8 sequence without completing it; 0 if none do.
std::size_t unfinished_end(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return wanted > back && byte <= 0xf4 ? back : 0;
  }
  return 0;
}

template <class Value>
std::string joined_all(std::span<const Value> values, std::string_view between) {
  std::string text;
  for (const Value& value : values) {
    if (&value != values.data()) text += between;
    if constexpr (std::is_integral_v<Value>) text += std::to_string(value);
    else text += value;
  }
  return text;
}

}  // namespace

Utf8Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead};
  if (lead < 0xc2 || lead > 0xf4) return {1, std::nullopt};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  char32_t code = lead & (0x7fU >> length);
  unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;  // of the second byte
  unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size() || byte(i) < least || byte(i) > most) return {i, std::nullopt};
    code = code << 6 | (byte(i) & 0x3fU);
    least = 0x80, most = 0xbf;
  }
  return {length, code};
}

bool is_invisible(char32_t code) {
  return code == 0xad || code == 0x61c || (code >= 0x180b && code <= 0x180f) || (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
         (code >= 0xfe00 && code <= 0xfe0f) || code == 0xfeff || (code >= 0xfff0 && code <= 0xfffb) || code >= 0xe0000;
}

std::string printable(std::string_view text, std::size_t limit) {
  const bool is_cut = text.size() > limit;
  if (is_cut) {
    text = text.substr(0, limit);
    text.remove_suffix(unfinished_end(text));
  }
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) move_printable(text, result);
  if (is_cut) result += "...";
  return result;
}

std::string quoted(std::string_view text, std::uint64_t whole) {
  const bool is_cut = whole > text.size();
  if (is_cut) text.remove_suffix(unfinished_end(text));
  std::string result = "\"";
  while (!text.empty()) {
    constexpr std::string_view plain = "\"\\\n\r\t", escaped = "\"\\nrt";
    const std::size_t special = plain.find(text[0]);
    if (special != std::string_view::npos) result += {'\\', escaped[special]}, text.remove_prefix(1);
    else move_printable(text, result);
  }
  result += '"';
  if (is_cut) result += fmt::format("…({} bytes)", whole);
  return result;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+,:@%=-";
  const std::string option = text.starts_with('-') ? "./" : "";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return option + std::string(text);
  std::string word = option + "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + '\'';
}

std::string url_escaped(std::string_view text) {
  constexpr std::string_view unreserved = "-._~";
  std::string result;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const bool stays = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       unreserved.find(c) != std::string_view::npos;
    result += stays ? std::string(1, c) : fmt::format("%{:02X}", code);
  }
  return result;
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string joined(std::span<const std::string> words, std::string_view between) { return joined_all(words, between); }
std::string joined(std::span<const std::uint32_t> numbers, std::string_view between) {
  return joined_all(numbers, between);
}
std::string joined(std::span<const int> numbers, std::string_view between) { return joined_all(numbers, between); }

// llex.c, inclinenumber: "\n", "\r", "\r\n" and "\n\r" each end one.
std::vector<std::size_t> line_starts(std::string_view text) {
  std::vector<std::size_t> starts = {0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n' && text[i] != '\r') continue;
    const bool pair = i + 1 < text.size() && (text[i + 1] == '\n' || text[i + 1] == '\r') && text[i + 1] != text[i];
    i += pair;
    starts.push_back(i + 1);
  }
  return starts;
}

}  // namespace luaspy
