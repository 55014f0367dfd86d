#pragma once
// A file that luaspy writes, often as root and in a folder where others may make files, too. So it is never written
// through a symbolic link of another user's: such a link could lead to any file.

#include <functional>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "system/calls.h"

namespace luaspy::system {

class WrittenFile : public std::ostream {
 public:
  // Opens the file, or makes it. Its content stays what it is until truncate(). A symbolic link at `path` is followed
  // if it belongs to the user that luaspy runs as, or to root. nullptr: `why` says why not.
  static std::unique_ptr<WrittenFile> open(const std::string& path, std::string& why);
  ~WrittenFile() override { close(); }

  bool is_new() const { return is_new_; }
  // It is a regular file that has a path: no device, no pipe, and not what a path below /proc leads to.
  bool is_file() const { return is_file_; }
  void truncate();
  // Writes what is buffered, and closes it. Whether all of it was written is what the stream says.
  void close();
  // Why not all of it could be written; 0 if all was.
  const Failure& failure() const { return buffer_.failure(); }

  // is_file(): a new file in its folder, with its permissions, under a name that nobody can foresee. nullptr: it cannot
  // be made, and `failure` says why.
  std::unique_ptr<WrittenFile> make_successor(Failure& failure) const;
  // Gives a closed successor this one's path, at once. If that fails, the successor is gone.
  Failure replace_by(WrittenFile& successor);
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
  WrittenFile(FileDescriptor file, std::string path, bool is_file, bool is_new);
  bool has_its_path() const;

  Buffer buffer_;
  std::string path_;  // with links followed
  bool is_file_ = false, is_new_ = false;
};

// Writes all of a file.
Result<void> write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace luaspy::system
