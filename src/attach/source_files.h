#pragma once
// A target's Lua files, as they are on disk now: found as the target finds them, within its root and
// from its working directory.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "attach/rooted_file.h"
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

  // The same files as luaspy itself finds them: of a process that luaspy started in its own working
  // directory, and that has ended.
  SourceFiles after_end() const;

  struct File {
    std::string text;      // without a byte order mark
    bool changed = false;  // since the process started, so what runs may differ
    system::FileIdentity identity;
  };
  // A file named as in Frame::file. nullopt: it does not exist, cannot be read, is not a regular
  // file, is precompiled, empty, or larger than 4 MiB. May block as long as its file system does.
  std::optional<File> read(const std::string& name) const;

  // Notes which rights the process has now; call it when the process is known to run Lua. What a
  // launched process was before that, sudo for example, may have had more of them.
  void see_owner();
  // Whether the process itself may read this file of that name, by the rights that were noted last;
  // a stranger may, if none were: luaspy can be allowed more, and a target can name any file.
  bool is_its_own(const std::string& name, const File& file) const;

  // Nothing of a file that was changed, and nothing after 256 MiB.
  std::optional<std::string> text(const std::string& file) override;

 private:
  SourceFiles(pid_t pid, std::int64_t started_ns, bool may_be_copies);

  pid_t pid_;
  std::int64_t started_ns_;  // of the real-time clock; 0 if unknown
  bool may_be_copies_;       // their inodes are of another time
  std::optional<Credentials> owner_;
  bool has_ended_ = false;
  std::size_t bytes_left_ = std::size_t{256} << 20;
};

}  // namespace luaspy
