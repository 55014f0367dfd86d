#pragma once
// The raw recording that a flame graph page carries (raw_format.h says where and how), read piece
// by piece: a page takes no more memory than its recording would. Its bytes are not trusted.

#include <array>
#include <cstdint>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>

struct z_stream_s;

namespace luaspy {

// Whether `in`, which is at its beginning and stays there, is a page, not a raw recording.
bool is_page(std::istream& in);

// Ends where the page is damaged, and after `most` bytes. `page` must outlive it.
class PageRecording : public std::streambuf {
 public:
  PageRecording(std::istream& page, std::size_t most);
  ~PageRecording() override;
  PageRecording(const PageRecording&) = delete;
  PageRecording& operator=(const PageRecording&) = delete;

  bool found() const { return found_; }
  // Bytes of the page that have been read.
  std::int64_t read() const { return read_; }

 protected:
  int_type underflow() override;

 private:
  bool find_mark();
  void decode();

  std::istream& page_;
  std::int64_t read_ = 0;
  bool found_ = false, ended_ = false;  // ended_: no more text
  std::string packed_;                  // decoded, not inflated yet
  std::array<char, 1 << 16> bytes_{};
  std::size_t bytes_left_;
  std::unique_ptr<z_stream_s> stream_;
};

}  // namespace luaspy
