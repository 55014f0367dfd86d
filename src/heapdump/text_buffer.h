#pragma once
// Formatted text on its way to a stream, in pieces of some size: a heap has millions of lines.

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <ostream>
#include <utility>

namespace luaspy {

class TextBuffer {
 public:
  // `out` must outlive it.
  explicit TextBuffer(std::ostream& out) : out_(out) {}
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  ~TextBuffer() { flush(); }

  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    constexpr std::size_t enough = 1 << 16;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    if (text_.size() > enough) flush();
  }
  void flush() {
    out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

 private:
  std::ostream& out_;
  fmt::memory_buffer text_;
};

}  // namespace luaspy
