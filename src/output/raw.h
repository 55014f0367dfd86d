#pragma once
// The raw recording: everything that was sampled, in the order of time, written as it comes. It is
// readable up to its last flush. docs/raw-format.md describes it byte by byte.

#include <map>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/profile.h"

namespace luaspy {

class RawWriter {
 public:
  // `stacks` and `threads` grow during the recording; samples refer to them by number. `unit`: of
  // all weights.
  RawWriter(const StackTable& stacks, const std::vector<Profile::Thread>& threads, Unit unit, std::ostream& out);

  // Writes all of `facts` except the stack. A loss of one thread is written with the thread.
  void sample(std::uint32_t thread, const Tick& tick, const Sample& facts, StackTable::StackId stack);
  void loss(Loss loss, std::int64_t count);
  void idle(std::int64_t count);
  void waiting(std::int64_t count);
  // The text of a Lua file; not more than raw::most_source of all together. An empty text withdraws
  // an earlier one.
  void source(const std::string& file, const Profile::Source& source);
  // Writes what has changed since the last call; the unit never changes.
  void about(const About& about);

  // Makes everything written since the last flush readable.
  void flush();

 private:
  void about(std::string_view key, const std::string& value);
  void catch_up();
  void tick(const Tick& tick);
  void idle_is_over();
  void add_record(std::uint8_t type, const std::string& body);
  void write_block();

  const StackTable& stacks_;
  const std::vector<Profile::Thread>& threads_;
  std::ostream& out_;
  std::string block_;
  std::string body_;                                       // of the record being made; kept for its memory
  std::size_t frames_ = 0, nodes_ = 1, told_threads_ = 0;  // written so far
  std::unordered_map<std::string, std::uint64_t> strings_;
  std::map<std::string, std::string> about_;
  std::vector<Quality> qualities_;  // by thread: the last one written
  Tick tick_;
  std::int64_t idle_ = 0;  // not written yet
};

}  // namespace luaspy
