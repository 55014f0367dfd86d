#pragma once
// The bytes of a file on their way to a reader: looked at before they are read, and decompressed.

#include <array>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>

#include "base/result.h"

struct z_stream_s;

namespace luaspy {

// Gives what `in` gives, whose first bytes can be looked at before. `in` must outlive it.
class HeadedStream : public std::streambuf {
 public:
  static constexpr std::size_t most_head = 1 << 16;

  // `seen`, if set, is called with the number of bytes that were read until then; it may be set later.
  explicit HeadedStream(std::istream& in, const std::function<void(std::int64_t)>* seen = nullptr);
  // Valid until the first byte is read.
  std::string_view head() const { return {piece_.data(), size_}; }

 protected:
  int_type underflow() override;

 private:
  std::size_t fill();

  std::istream& in_;
  const std::function<void(std::int64_t)>* seen_;
  std::array<char, most_head> piece_{};
  std::size_t size_;
  bool is_head_ = true;
  std::int64_t read_ = 0;
};

inline constexpr std::string_view gzip_magic = "\x1f\x8b";

// What a gzip stream (RFC 1952) holds, of one member or several. Ends where it is damaged.
class InflatedStream : public std::streambuf {
 public:
  explicit InflatedStream(std::istream& packed);
  ~InflatedStream() override;
  InflatedStream(const InflatedStream&) = delete;
  InflatedStream& operator=(const InflatedStream&) = delete;

  // Where the gzip stream is damaged, and how, once it has ended; "": it is whole.
  const std::string& torn() const { return torn_; }

 protected:
  int_type underflow() override;

 private:
  bool fill();

  std::istream& in_;
  std::array<char, 1 << 15> packed_{};
  std::array<char, 1 << 16> bytes_{};
  std::int64_t read_ = 0, inflated_ = 0;
  bool ended_ = false;
  std::string torn_;
  std::unique_ptr<z_stream_s> stream_;
};

// A file that may be compressed by gzip.
class UnpackedFile {
 public:
  // `file` and `seen` as in HeadedStream: of the file as it is.
  explicit UnpackedFile(std::istream& file, const std::function<void(std::int64_t)>* seen = nullptr);

  // Its first bytes, unpacked; valid until the first byte is read.
  std::string_view head() const { return (unpacked_ ? *unpacked_ : packed_).head(); }
  std::istream& bytes() { return bytes_; }
  // As InflatedStream::torn().
  std::string torn() const { return inflated_ ? inflated_->torn() : std::string(); }

 private:
  HeadedStream packed_;
  std::istream packed_in_;
  std::optional<InflatedStream> inflated_;
  std::istream inflated_in_{nullptr};
  std::optional<HeadedStream> unpacked_;
  std::istream bytes_;
};

// Files of which a reader needs all at once have to be smaller.
inline constexpr std::size_t most_at_once = 1 << 26;
// All that comes. An Error if that is more than most_at_once.
Result<std::string> read_all_of(std::istream& in);

}  // namespace luaspy
