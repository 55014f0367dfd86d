#include "input/page_recording.h"

#include <zlib.h>

#include <algorithm>

#include "profile/raw_format.h"

namespace luaspy {
namespace {

constexpr int gzip_window = MAX_WBITS + 16;  // zlib.h: with 16 more, a gzip header

// RFC 4648, section 4. -1 for any other character.
int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

bool is_page(std::istream& in) { return in.peek() == raw::page_begin; }

PageRecording::PageRecording(std::istream& page, std::size_t most)
    : page_(page), found_(find_mark()), bytes_left_(most), stream_(std::make_unique<z_stream_s>()) {
  if (found_ && ::inflateInit2(stream_.get(), gzip_window) != Z_OK) found_ = false;
}

PageRecording::~PageRecording() { ::inflateEnd(stream_.get()); }

// No beginning of the mark comes again within it: after a character that does not fit, the mark can
// only begin with that character.
bool PageRecording::find_mark() {
  std::size_t matched = 0;
  for (int c = page_.get(); c != std::istream::traits_type::eof(); c = page_.get()) {
    ++read_;
    if (static_cast<char>(c) == raw::page_mark[matched]) ++matched;
    else matched = static_cast<char>(c) == raw::page_mark[0] ? 1 : 0;
    if (matched == raw::page_mark.size()) return page_.peek() != '<';
  }
  return false;
}

void PageRecording::decode() {
  constexpr std::size_t piece = 1 << 16;  // of text; four characters are three bytes
  std::string text(piece, '\0');
  page_.read(text.data(), piece);
  text.resize(static_cast<std::size_t>(page_.gcount()));
  read_ += page_.gcount();
  unsigned bits = 0;
  std::size_t digits = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0) {
      ended_ = true;
      break;
    }
    bits = bits << 6 | static_cast<unsigned>(digit);
    if (++digits % 4 == 0)
      for (int shift = 16; shift >= 0; shift -= 8) packed_ += static_cast<char>(bits >> shift & 0xff);
  }
  ended_ |= text.size() < piece;
  if (digits % 4 > 1) packed_ += static_cast<char>(bits >> (digits % 4 == 2 ? 4 : 10) & 0xff);
  if (digits % 4 == 3) packed_ += static_cast<char>(bits >> 2 & 0xff);
}

PageRecording::int_type PageRecording::underflow() {
  for (;;) {
    if (!found_ || bytes_left_ == 0) return traits_type::eof();
    if (packed_.empty() && !ended_) decode();
    stream_->next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_->avail_in = static_cast<uInt>(packed_.size());
    stream_->next_out = reinterpret_cast<Bytef*>(bytes_.data());
    stream_->avail_out = static_cast<uInt>(std::min(bytes_.size(), bytes_left_));
    const std::size_t room = stream_->avail_out;
    const int state = ::inflate(stream_.get(), Z_NO_FLUSH);
    packed_.erase(0, packed_.size() - stream_->avail_in);
    const std::size_t size = room - stream_->avail_out;
    bytes_left_ -= size;
    if (size != 0) {
      setg(bytes_.data(), bytes_.data(), bytes_.data() + size);
      return traits_type::to_int_type(bytes_[0]);
    }
    if ((state != Z_OK && state != Z_BUF_ERROR) || ended_) return traits_type::eof();
  }
}

}  // namespace luaspy
