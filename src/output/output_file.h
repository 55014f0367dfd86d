#pragma once
// The file to which a profile is written: its name and its format; ensures that it is complete.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "output/format.h"
#include "system/write_behind.h"
#include "system/written_file.h"

namespace luaspy {

// "luaspy-lua5.4-1234": how files are called that nobody has named. `program`: its path, as it was
// started or where it is (proc(5): " (deleted)" is no part of it).
std::string default_stem(const std::string& program, int pid);
// `stem` with the extension, and with a number if there is such a file already.
std::string unused_name(const std::string& stem, std::string_view extension);

// The output of a profile. It is opened before there is a profile, so that a path that cannot be
// written is reported at once. A file that was there before keeps its content until the first byte
// is written. It is never written through a symbolic link of another user's (system/written_file.h).
class OutputFile {
 public:
  struct Wanted {
    std::string path;    // "-": standard output; "": an unused name, made from `stem`
    std::string format;  // "": by the path's ending, else the first of formats()
    std::string stem;    // without the extension
  };
  static Result<OutputFile> open(const Wanted& wanted);
  // `format` must outlive it.
  static Result<OutputFile> open(const std::string& path, const Format& format);

  std::ostream& stream();
  // The same, but what is written there does not wait for a slow disk or reader (system/write_behind.h). From then on,
  // stream() is that, too.
  std::ostream& stream_behind();
  // There is nothing to write: removes the file, unless it was there before or has been written.
  void discard();
  // Atomically replaces the file: readers see either the old or the new content.
  Result<void> rewrite(const Profile& profile, const WriteOptions& options);
  Result<void> write(const Profile& profile, const WriteOptions& options);
  // Completes the file with all that was written to stream().
  Result<void> finish();

  bool to_stdout() const { return path_ == "-"; }
  bool is_file() const;  // neither a device nor a pipe
  bool is_raw() const { return format_->write == nullptr; }
  const std::string& path() const { return path_; }
  const Format& format() const { return *format_; }
  // What to say if not all of it could be written.
  Error incomplete() const;
  std::string next_step() const { return luaspy::next_step(*format_, path_); }

 private:
  const Format* format_ = nullptr;
  std::string path_;
  std::unique_ptr<system::WrittenFile> file_;  // nullptr: standard output
  std::unique_ptr<system::WriteBehind> behind_;
  bool begun_ = false;  // the file's old content is gone
};

}  // namespace luaspy
