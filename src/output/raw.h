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
  // An allocation in a recording of time, that stands for so many bytes and objects. `at_ns`: not
  // before the last sample.
  struct Allocation {
    std::int64_t at_ns = 0, bytes = 0, objects = 0;
  };
  void allocation(std::uint32_t thread, const Allocation& allocation, const Sample& facts, StackTable::StackId stack);
  void loss(Loss loss, std::int64_t count);
  void idle(std::int64_t count);
  void waiting(std::int64_t count);
  // A global_State that has no number yet: its changes have the next one.
  void state(const HeapChanges::State& state);
  void heap(const Tick& tick, const HeapChange& change);
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
  void put_facts(const Sample& facts, bool has_quality);
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
  std::vector<Quality> qualities_;        // by thread: the last one written
  std::vector<Quality> of_allocations_;   // the same
  std::vector<std::int64_t> heap_bytes_;  // by state: the last size written
  Tick tick_;
  std::int64_t idle_ = 0;  // not written yet
};

}  // namespace luaspy
