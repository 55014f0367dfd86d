#pragma once
// A raw recording in memory, for a format that carries it.

#include <streambuf>
#include <string>
#include <string_view>

#include "profile/raw_format.h"

namespace luaspy {

// Keeps up to raw::most_carried bytes; if there are more, it keeps none.
class CarriedRecording : public std::streambuf {
 public:
  explicit CarriedRecording(std::size_t most = raw::most_carried) : most_(most) {}
  std::string_view bytes() const { return bytes_; }

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    if (too_many_) return count;
    bytes_.append(bytes, static_cast<std::size_t>(count));
    too_many_ = bytes_.size() > most_;
    if (too_many_) bytes_ = std::string();
    return count;
  }
  int_type overflow(int_type c) override {
    const char byte = traits_type::to_char_type(c);
    xsputn(&byte, 1);
    return traits_type::not_eof(c);
  }

 private:
  std::size_t most_;
  std::string bytes_;
  bool too_many_ = false;
};

}  // namespace luaspy
