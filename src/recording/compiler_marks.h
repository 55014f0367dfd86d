#pragma once
// What LuaJIT's compilers decide during a recording, as its marks.

#include "recording/watched_compilers.h"
#include "system/calls.h"

namespace luaspy {

class ProcessTree;
class Recording;

class CompilerMarks {
 public:
  // From now on compilers are watched. `tree` must outlive it.
  explicit CompilerMarks(ProcessTree& tree);

  // The time of the recording begins.
  void start(system::Clock::time_point start) { start_ = start; }
  // Adds what is new to the recording. Often: it costs little if it is called too often.
  void look(Recording& recording);
  // At the end. `duration_ns`: what came later belongs to no recording.
  void finish(Recording& recording, std::int64_t duration_ns);

  // What to say of it at the end; "": nothing.
  std::string text() const;

 private:
  void add(Recording& recording, const JitSeen& seen, const JitEvent& event, std::int64_t until_ns);

  WatchedCompilers compilers_;
  system::Clock::time_point start_ = system::Clock::now();
};

}  // namespace luaspy
