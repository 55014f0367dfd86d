#pragma once
// The file that a profile ends in: its name, its format, and that it is whole.

#include <fstream>
#include <string>

#include "base/result.h"
#include "output/format.h"

namespace luaspy {

// Where a profile goes. Opened before there is one: a path that cannot be written is told at once.
class OutputFile {
 public:
  struct Wanted {
    std::string path;    // "-": standard output; "": a name that no file has, made of `stem`
    std::string format;  // "": by the path's ending, else the first of formats()
    std::string stem;    // without the extension
  };
  static Result<OutputFile> open(const Wanted& wanted);

  std::ostream& stream();
  // All that was written before gives way to this, at once: who looks at the file meanwhile sees
  // one or the other.
  Result<void> rewrite(const Profile& profile, const WriteOptions& options);
  Result<void> write(const Profile& profile, const WriteOptions& options);
  // What was written to stream() is there.
  Result<void> finish();

  bool to_stdout() const { return path_ == "-"; }
  bool is_file() const;  // no device, no pipe
  bool is_raw() const { return format_->write == nullptr; }
  const std::string& path() const { return path_; }
  const Format& format() const { return *format_; }

 private:
  Error incomplete() const;

  const Format* format_ = nullptr;
  std::string path_;
  std::ofstream file_;
};

}  // namespace luaspy
