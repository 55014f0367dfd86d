#pragma once
// Puts the text of the Lua files that a recording has functions of into the recording: what is
// shown beside a graph later is what was there when it ran.

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "attach/source_files.h"
#include "base/ids.h"
#include "profile/raw_format.h"
#include "system/calls.h"

namespace luaspy {

class Recording;

class SourceCollector {
 public:
  // `launched`: the process that luaspy has started, in its own working directory; 0: none.
  explicit SourceCollector(pid_t launched);

  // A stack of a process: of the recording's profile.
  void add(pid_t pid, StackId stack);
  // Reads the files of functions that are new since the last call, as the process that ran them
  // finds them. All together are not more than raw::most_source bytes; a larger file is left out, and
  // so is one that the process may not read: what a process names its code is not to be believed. If
  // two processes have different files of one name, neither is shown.
  void collect(Recording& recording);
  // The same for what could not be read before of the launched process, if it has ended.
  void finish(Recording& recording);

 private:
  struct Of {
    explicit Of(pid_t pid) : files(pid) {}
    SourceFiles files;
    std::unordered_set<StackId> seen;  // all of their files are in names
    std::set<std::string> names;
  };
  struct Found {
    system::FileIdentity identity;
    bool added = false, several = false;
  };
  // False: there is no such file now.
  bool read(const SourceFiles& files, const std::string& name, Recording& recording);

  pid_t launched_;
  std::map<pid_t, Of> processes_;
  std::vector<std::pair<pid_t, StackId>> fresh_;
  std::map<std::string, Found> found_;  // by name
  std::set<std::string> missing_;       // of the launched process, not read
  std::size_t bytes_left_ = raw::most_source;
};

}  // namespace luaspy
