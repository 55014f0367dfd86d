#pragma once
// Text on its way to a stream, in pieces of some size: a heap or a trace has millions of lines.

#include <fmt/core.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace luaspy {

class TextBuffer {
 public:
  // `out` must outlive it.
  explicit TextBuffer(std::ostream& out) : out_(out) {}
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  ~TextBuffer() { flush(); }

  TextBuffer& operator<<(std::string_view text) {
    constexpr std::size_t enough = 1 << 16;
    text_ += text;
    if (text_.size() > enough) flush();
    return *this;
  }
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    *this << fmt::format(format, std::forward<Args>(args)...);
  }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

 private:
  std::ostream& out_;
  std::string text_;
};

}  // namespace luaspy
