#pragma once
// A file that luaspy writes, often as root and in a folder where others may make files, too. So it is never written
// through a symbolic link of another user's: such a link could lead to any file. What was there before stays until all
// of what replaces it is written.

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "system/calls.h"

namespace luaspy::system {

class WrittenFile : public std::ostream {
 public:
  // Opens the file, or makes it. Its content stays what it is until truncate(). A symbolic link at `path` is followed
  // if it belongs to the user that luaspy runs as, or to root. nullptr: `why` says why not.
  static std::unique_ptr<WrittenFile> open(const std::string& path, std::string& why);
  // A new file of an unforeseeable name that has `name` in it, which only its user may read. nullptr: it cannot be
  // made.
  static std::unique_ptr<WrittenFile> make_in(const std::string& folder, const std::string& name);
  // Removes a successor that has replaced nothing.
  ~WrittenFile() override;

  const std::string& path() const { return path_; }  // with links followed
  bool is_new() const { return is_new_; }
  // It was empty when it was opened.
  bool was_empty() const { return was_empty_; }
  // It is a regular file that has a path: no device, no pipe, and not what a path below /proc leads to.
  bool is_file() const { return is_file_; }
  void truncate();
  // Writes what is buffered, and closes it. Whether all of it was written is what the stream says.
  void close();
  // Why not all of it could be written; 0 if all was.
  const Failure& failure() const { return buffer_.failure(); }

  // is_file(): a new file in its folder, with its permissions and, where that is allowed, its owner, under a name that
  // nobody can foresee. nullptr: it cannot be made, and `failure` says why.
  std::unique_ptr<WrittenFile> make_successor(Failure& failure) const;
  // Whether the file itself may be overwritten as no successor can be made: nobody may make a file in its folder.
  bool may_be_written_here(const Failure& failure) const;
  // Gives a closed successor this one's path, at once.
  Failure replace_by(WrittenFile& successor);
  // What is at its path now has that path with ".old" as well from now on, until another file replaces it here. False:
  // that failed.
  bool keep_as_old() const;
  // Removes it, unless its path is another file's by now.
  void remove();

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(FileDescriptor file);
    const FileDescriptor& file() const { return file_; }
    const Failure& failure() const { return failure_; }
    void fail(const Failure& failure);  // the first one counts
    bool close();

   protected:
    int_type overflow(int_type next) override;
    int sync() override;

   private:
    FileDescriptor file_;
    std::string bytes_;
    Failure failure_;
  };
  enum class Origin : std::uint8_t { existed, made, successor };
  WrittenFile(FileDescriptor file, std::string path, bool is_file, Origin origin);
  bool has_its_path() const;

  Buffer buffer_;
  std::string path_;
  bool is_file_ = false, is_new_ = false, was_empty_ = true;
  bool is_successor_ = false;  // and has not replaced anything yet
};

// Where something can be kept for which there is no room where it should be: the folder for temporary files, the user's
// own, and others that every Linux has.
std::vector<std::string> other_folders();

// From now on, files that luaspy makes may be read by their user alone (umask(2)).
void make_files_private();

// Writes all of a file. If that fails, what was there before still is.
Result<void> write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace luaspy::system
