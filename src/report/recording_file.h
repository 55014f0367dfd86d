#pragma once
// A file that report reads: a raw recording or a page, by its name.

#include <cstdint>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>

#include "system/calls.h"

namespace luaspy {

// Can be read several times, each time from its beginning, even if it is a pipe, which gives its
// bytes only once: of a pipe up to raw::most_carried bytes are kept.
class RecordingFile {
 public:
  // "-": standard input.
  explicit RecordingFile(std::string path);
  ~RecordingFile();

  const std::string& path() const { return path_; }  // for people
  std::int64_t size() const;                         // bytes; 0 if it is not known
  // Valid until the next call. nullptr: it cannot be opened, for the reason why_not(), or it is a pipe
  // that was read before and had more bytes than are kept.
  std::istream* open();
  system::Failure why_not() const;
  // Whether the latter is why.
  bool is_used_up() const;

 private:
  class Pipe;
  std::string path_, place_;  // place_: where it is opened
  std::unique_ptr<Pipe> pipe_;
  std::unique_ptr<std::istream> in_;
};

}  // namespace luaspy
