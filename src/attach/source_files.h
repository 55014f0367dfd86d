#pragma once
// A target's Lua files, as they are on disk now: found as the target finds them, within its root and
// from its working directory.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/source_texts.h"

namespace luaspy {

class SourceFiles : public SourceTexts {
 public:
  // Those of a process. A file counts as changed if its contents were written after the process
  // started, or its inode was changed (st_ctim): a package manager, `cp -p` and `rsync -t` give a new
  // file the time of an old one. So a file counts as changed, too, after chmod or a new hard link.
  explicit SourceFiles(pid_t pid);
  // Files as luaspy itself finds them, for a core file. Those whose contents were written after
  // `known_until_ns` (real-time clock) count as changed. They may be copies on another machine,
  // which say no more than that.
  static SourceFiles of_core(std::int64_t known_until_ns);

  struct File {
    std::string text;         // without a byte order mark
    bool changed = false;     // since the process started, so what runs may differ
    bool is_its_own = false;  // everybody may read the file, or it is of the process's user: luaspy may be allowed more
  };
  // A file named as in Frame::file. nullopt: it does not exist, cannot be read, is not a regular
  // file, is precompiled, empty, or larger than 4 MiB. May block as long as its file system does.
  std::optional<File> read(const std::string& name) const;

  // Nothing of a file that was changed, and nothing after 256 MiB.
  std::optional<std::string> text(const std::string& file) override;

 private:
  SourceFiles(pid_t pid, std::int64_t started_ns, bool may_be_copies);

  pid_t pid_;
  uid_t user_;
  std::int64_t started_ns_;  // of the real-time clock; 0 if unknown
  bool may_be_copies_;       // their inodes are of another time
  std::size_t bytes_left_ = std::size_t{256} << 20;
};

}  // namespace luaspy
