#pragma once
// Puts the text of the Lua files that a recording has functions of into the recording: what is
// shown beside a graph later is what was there when it ran.

#include <sys/types.h>

#include <cstddef>
#include <set>
#include <string>

#include "attach/source_files.h"
#include "profile/raw_format.h"
#include "record/recording.h"

namespace luaspy {

class SourceCollector {
 public:
  // `launched`: luaspy has started the process, in its own working directory.
  SourceCollector(pid_t pid, bool launched) : files_(pid), launched_(launched) {}

  // Reads the files of functions that are new since the last call, as the process finds them. All
  // together are not more than raw::most_source bytes; a larger file is left out, and so is one that
  // only luaspy may read: what a process names its code is not to be believed.
  void collect(Recording& recording);
  // The same for what could not be read before: files of a process that has ended.
  void finish(Recording& recording);

 private:
  void read(const SourceFiles& files, const std::string& file, Recording& recording);

  SourceFiles files_;
  bool launched_;
  std::size_t seen_ = 0;           // frames
  std::set<std::string> missing_;  // not read
  std::set<std::string> known_;
  std::size_t bytes_left_ = raw::most_source;
};

}  // namespace luaspy
