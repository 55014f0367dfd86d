#pragma once
// A gzip stream (RFC 1952) without a time or a file's name: the same bytes give the same file.

#include <ostream>
#include <string>
#include <string_view>

struct z_stream_s;

namespace luaspy {

class Gzip {
 public:
  // `level`: from 1, the fastest, to 9, the smallest.
  explicit Gzip(std::ostream& out, int level = 6);
  // Writes the end.
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  void add(std::string_view bytes);

 private:
  void deflate(int flush);

  std::ostream& out_;
  z_stream_s* stream_;
  std::string waiting_;  // not compressed yet
};

}  // namespace luaspy
