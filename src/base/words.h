#pragma once
// The words and numbers that files of /proc are made of.

#include <algorithm>
#include <charconv>
#include <string_view>

namespace luaspy {

inline constexpr std::string_view white = " \t\n";

// Removes the first word from `text` and returns it; empty if there is none.
inline std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(white), text.size()));
  const std::string_view word = text.substr(0, std::min(text.find_first_of(white), text.size()));
  text.remove_prefix(word.size());
  return word;
}

inline void skip_words(std::string_view& text, int count) {
  for (int i = 0; i < count; ++i) (void)next_word(text);
}

// Removes the first line from `text` and returns it without its line break.
inline std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// 0 if there is no number. A prefix "0x" makes it hexadecimal, whatever the base.
template <typename T>
T number(std::string_view word, int base = 10) {
  if (word.starts_with("0x")) word.remove_prefix(2), base = 16;
  T value{};
  std::from_chars(word.data(), word.data() + word.size(), value, base);
  return value;
}

}  // namespace luaspy
