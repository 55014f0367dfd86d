#pragma once
// The lines of a text whose content is not trusted.

#include <fmt/format.h>

#include <istream>
#include <optional>
#include <string>
#include <string_view>

namespace luaspy {

class LineReader {
 public:
  explicit LineReader(std::istream& in) : in_(*in.rdbuf()) {}

  // Without its line break; valid until the next call. nullopt: there are no more, or too_long().
  std::optional<std::string_view> next() {
    constexpr std::size_t longest = 1 << 20;
    line_.clear();
    int c = in_.sbumpc();
    if (c == std::char_traits<char>::eof()) return std::nullopt;
    ++number_;
    for (; c != std::char_traits<char>::eof() && c != '\n'; c = in_.sbumpc()) {
      if (line_.size() == longest) return too_long_ = true, std::nullopt;
      line_ += static_cast<char>(c);
    }
    if (line_.ends_with('\r')) line_.pop_back();
    return line_;
  }

  // "line 5: no number at its end".
  std::string at(std::string_view what) const { return fmt::format("line {}: {}", number_, what); }
  // What is wrong where next() has ended; "": the text has ended there.
  std::string torn() const { return too_long_ ? at("it is longer than 1 MiB") : std::string(); }

 private:
  std::streambuf& in_;
  std::string line_;
  std::int64_t number_ = 0;
  bool too_long_ = false;
};

}  // namespace luaspy
