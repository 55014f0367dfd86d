#include "output/gzip.h"

#include <zlib.h>

#include <array>
#include <new>

namespace luaspy {
namespace {

constexpr std::size_t piece = 1 << 16;
constexpr int gzip_window = MAX_WBITS + 16;  // zlib.h: with 16 more, a gzip header, whose time is 0

}  // namespace

Gzip::Gzip(std::ostream& out, int level) : out_(out), stream_(new z_stream{}) {
  constexpr int memory_level = 8;  // zlib's default
  if (::deflateInit2(stream_, level, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) == Z_OK) return;
  delete stream_;
  throw std::bad_alloc();  // its only failure with these arguments
}

Gzip::~Gzip() {
  deflate(Z_FINISH);
  ::deflateEnd(stream_);
  delete stream_;
}

void Gzip::add(std::string_view bytes) {
  waiting_ += bytes;
  if (waiting_.size() >= piece) deflate(Z_NO_FLUSH);
}

void Gzip::deflate(int flush) {
  std::array<char, piece> compressed;
  stream_->next_in = reinterpret_cast<Bytef*>(waiting_.data());
  stream_->avail_in = static_cast<uInt>(waiting_.size());
  do {
    stream_->next_out = reinterpret_cast<Bytef*>(compressed.data());
    stream_->avail_out = static_cast<uInt>(compressed.size());
    ::deflate(stream_, flush);
    out_.write(compressed.data(), static_cast<std::streamsize>(compressed.size() - stream_->avail_out));
  } while (stream_->avail_out == 0);
  waiting_.clear();
}

}  // namespace luaspy
