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
// The name with the local time in the place of %t ("20261126-041752") and `pid` in that of %p.
std::string name_with_time(const std::string& name, int pid);
// `stem` with the extension, and with a number if there is such a file already.
std::string unused_name(const std::string& stem, std::string_view extension);

// The output of a profile. It is opened before there is a profile, so that a path that cannot be
// written is reported at once. A file that was there before stays until all of what replaces it is
// written beside it, and a recording that is replaced stays as FILE.old. It is never written
// through a symbolic link of another user's (system/written_file.h).
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

  // What is written there is at path() once it is finished.
  std::ostream& stream();
  // The same, but what is written there is at path() at once, and does not wait for a slow disk or reader
  // (system/write_behind.h). From then on, stream() is that, too.
  std::ostream& stream_behind();
  // What is at path() becomes FILE.old, too, if the format says so and luaspy has not written it. Implied by all that
  // replaces it; a process that replaces it in a copy of itself has to say it before.
  void keep_former();
  // There is nothing to write: removes the file, unless it was there before or has been written.
  void discard();
  // Atomically replaces the file: readers see either the old or the new content.
  Result<void> rewrite(const Profile& profile, const WriteOptions& options);
  // The same, and if there is no space for it, writes the profile to a file elsewhere, which the error names.
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
  Result<void> kept_elsewhere(const Profile& profile, const WriteOptions& options) const;

  const Format* format_ = nullptr;
  std::string path_;
  std::unique_ptr<system::WrittenFile> file_;  // nullptr: standard output
  std::unique_ptr<system::WrittenFile> next_;  // what will replace it
  std::unique_ptr<system::WriteBehind> behind_;
  system::Failure failure_;  // why it could not be replaced, the last time; 0 if it was
  bool here_ = false;        // it is written where it is, as nothing may be made beside it
  bool begun_ = false;       // the file's old content is gone
  bool kept_ = false;        // or FILE.old
};

}  // namespace luaspy
