#pragma once
// Looks at the compilers of some LuaJITs, a thousand times a second: at what changes in jit_State. Nothing is stopped.
// What comes and goes between two looks is not seen; how often a place was tried is in its penalty, and is.

#include <memory>
#include <vector>

#include "attach/live_memory.h"
#include "jitwatch/jit_knowledge.h"
#include "system/calls.h"

namespace luaspy {

// Of one Lua.
class JitWatcher {
 public:
  JitWatcher(pid_t pid, const Lua& lua, Address G, system::Clock::time_point start);
  // For tests: of other memory.
  JitWatcher(std::unique_ptr<Memory> memory, pid_t pid, const Lua& lua, Address G, system::Clock::time_point start);

  // One look. Takes some µs, more if something has changed.
  void look();
  // Lists functions, traces and strings: takes as long as a walk over all objects. What was known stays if the target
  // has ended.
  void survey();

  // Prototypes that are of interest, whether or not a survey comes upon them.
  void want(std::vector<Address> prototypes);

  const JitKnowledge& knowledge() const { return knowledge_; }
  const JitReader& reader() const { return *reader_; }

 private:
  bool is_there() const;
  bool is_closing(const std::vector<Address>& objects) const;
  void see_whether_on();
  std::optional<JitInstant> stable(std::optional<JitInstant> now) const;
  CodePlace place_of(Address instruction);
  void add_event(JitEvent event);
  bool is_flushed(const JitInstant& now) const;
  void see_flush(const JitInstant& now);
  void see_penalties(const JitInstant& now);
  void see_failed(const JitPenalty& penalty, JitAttempts& attempts, const JitInstant& now, bool is_first);
  void see_blacklisted();
  void see_traces(const JitInstant& now);
  void add_abort(JitAttempts& attempts, JitAbort abort);

  std::unique_ptr<Memory> memory_;
  std::unique_ptr<JitReader> reader_;
  system::Clock::time_point start_;
  JitKnowledge knowledge_;
  std::vector<JitPenalty> penalties_;  // as they were seen last
  std::map<Address, int> deferred_;    // by start: how often its abort was not over yet
  std::vector<Address> objects_;       // of traces, by number
  std::vector<Address> wanted_;
  bool has_looked_ = false, is_closing_ = false;
  int on_ = 0;  // how often more it was seen to be on than off
  Address code_top_ = 0;
  std::uint32_t free_slot_ = 0;
  unsigned looks_ = 0;
};

}  // namespace luaspy
