#include "input/source_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <new>

namespace luaspy {

HeadedStream::HeadedStream(std::istream& in, const std::function<void(std::int64_t)>* seen)
    : in_(in), seen_(seen), size_(fill()) {}

std::size_t HeadedStream::fill() {
  in_.read(piece_.data(), static_cast<std::streamsize>(piece_.size()));
  return static_cast<std::size_t>(in_.gcount());
}

HeadedStream::int_type HeadedStream::underflow() {
  if (!is_head_) size_ = fill();
  is_head_ = false;
  if (size_ == 0) return traits_type::eof();
  read_ += static_cast<std::int64_t>(size_);
  if (seen_ != nullptr && *seen_) (*seen_)(read_);
  setg(piece_.data(), piece_.data(), piece_.data() + size_);
  return traits_type::to_int_type(piece_[0]);
}

InflatedStream::InflatedStream(std::istream& packed) : in_(packed), stream_(std::make_unique<z_stream_s>()) {
  constexpr int gzip_window = MAX_WBITS + 16;  // zlib.h: with 16 more, a gzip header
  if (::inflateInit2(stream_.get(), gzip_window) != Z_OK) throw std::bad_alloc();  // its only failure with these
}

InflatedStream::~InflatedStream() { ::inflateEnd(stream_.get()); }

bool InflatedStream::fill() {
  in_.read(packed_.data(), static_cast<std::streamsize>(packed_.size()));
  stream_->next_in = reinterpret_cast<Bytef*>(packed_.data());
  stream_->avail_in = static_cast<uInt>(in_.gcount());
  read_ += in_.gcount();
  return stream_->avail_in != 0;
}

InflatedStream::int_type InflatedStream::underflow() {
  constexpr std::int64_t most = std::int64_t{1} << 33;  // bytes: a small file may hold any number of zeros
  bool between = false;                                 // two members, or at the end
  while (!ended_) {
    if (stream_->avail_in == 0 && !fill()) {
      ended_ = true;
      if (!between) torn_ = fmt::format("its gzip stream is cut off at byte {}", read_);
      break;
    }
    if (between && ::inflateReset(stream_.get()) != Z_OK) break;
    stream_->next_out = reinterpret_cast<Bytef*>(bytes_.data());
    stream_->avail_out = static_cast<uInt>(bytes_.size());
    const int state = ::inflate(stream_.get(), Z_NO_FLUSH);
    between = state == Z_STREAM_END;
    const std::size_t size = bytes_.size() - stream_->avail_out;
    inflated_ += static_cast<std::int64_t>(size);
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
      ended_ = true;
      torn_ = fmt::format("its gzip stream is damaged before byte {}", read_ - stream_->avail_in);
    } else if (inflated_ > most) {
      ended_ = true;
      torn_ = fmt::format("it holds more than {} GiB, compressed", most >> 30);
    }
    if (between && stream_->avail_in == 0 && !fill()) ended_ = true;
    else if (between) (void)::inflateReset(stream_.get()), between = false;
    if (size == 0) continue;
    setg(bytes_.data(), bytes_.data(), bytes_.data() + size);
    return traits_type::to_int_type(bytes_[0]);
  }
  return traits_type::eof();
}

UnpackedFile::UnpackedFile(std::istream& file, const std::function<void(std::int64_t)>* seen)
    : packed_(file, seen), packed_in_(&packed_), bytes_(&packed_) {
  if (!packed_.head().starts_with(gzip_magic)) return;
  inflated_in_.rdbuf(&inflated_.emplace(packed_in_));
  bytes_.rdbuf(&unpacked_.emplace(inflated_in_));
}

Result<std::string> read_all_of(std::istream& in) {
  std::string bytes;
  constexpr std::size_t piece = 1 << 16;
  while (in) {
    const std::size_t size = bytes.size();
    if (size > most_at_once)
      return Error{Cause::usage,
                   fmt::format("It has more than {} MiB; of its kind, luaspy reads smaller ones.", most_at_once >> 20)};
    bytes.resize(size + piece);
    in.read(bytes.data() + size, piece);
    bytes.resize(size + static_cast<std::size_t>(in.gcount()));
  }
  return bytes;
}

}  // namespace luaspy
