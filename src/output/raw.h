#pragma once
// The raw recording: everything that was sampled, in the order of time, written as it comes. It is
// readable up to its last flush. docs/raw-format.md describes it byte by byte.

#include <map>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/event_tables.h"
#include "events/mark.h"
#include "events/suspended.h"
#include "profile/profile.h"

namespace luaspy {

class RawWriter {
 public:
  // `tables` grow during the recording; of them, what is needed is written when it is needed first.
  // `unit`: of all weights.
  RawWriter(const EventTables& tables, Unit unit, std::ostream& out);

  // A sample without a loss.
  void sample(ThreadId thread, const Tick& tick, const Sample& sample);
  // One tick of a thread without a sample, for which it may have been stopped.
  void lost(ThreadId thread, const Tick& tick, Loss loss, std::int64_t stopped_ns);
  // An allocation in a recording of time, that stands for so many bytes and objects. `at_ns`: not
  // before the last sample.
  struct Allocation {
    std::int64_t at_ns = 0, bytes = 0, objects = 0;
  };
  void allocation(ThreadId thread, const Allocation& allocation, const Sample& sample);
  void loss(Loss loss, std::int64_t count);
  void idle(std::int64_t count);
  void waiting(std::int64_t count);
  // A global_State that has no number yet: its changes have the next one.
  void state(const HeapChanges::State& state);
  void heap(const Tick& tick, const HeapChange& change);
  // Not more than most_marks.
  void mark(const Mark& mark);
  void suspended(const SuspendedLook& look);
  // The text of a Lua file; not more than raw::most_source of all together. An empty text withdraws
  // an earlier one.
  void source(const std::string& file, const Profile::Source& source);
  // Writes what has changed since the last call; the unit never changes.
  void about(const Metadata& about);

  // Makes everything written since the last flush readable.
  void flush();

 private:
  void about(std::string_view key, const std::string& value);
  std::uint64_t number_of(const std::string& text);
  std::uint64_t number_of(FrameId frame);
  std::uint64_t number_of(StackId stack);
  std::uint64_t number_of(ThreadId thread);
  std::uint64_t number_of(LabelsId labels);
  void tick(const Tick& tick);
  void put_facts(const Sample& facts, bool has_quality);
  void idle_is_over();
  void add_record(std::uint8_t type, const std::string& body);
  void write_block();

  const EventTables& tables_;
  std::ostream& out_;
  std::string block_;
  std::string body_;  // of the record being made; kept for its memory
  // What was written, with its number in the file; not_written: it was not.
  template <typename Id>
  struct Written {
    ById<Id, std::uint32_t> numbers;
    std::uint32_t count = 0;
  };
  Written<FrameId> frames_;
  Written<StackId> stacks_;
  Written<ThreadId> threads_;
  Written<LabelsId> labels_;
  static constexpr std::uint32_t not_written = ~0U;
  std::unordered_map<std::string, std::uint64_t> strings_;
  std::vector<StackId> chain_;  // kept for its memory
  std::map<std::string, std::string> about_;
  std::vector<Quality> qualities_;        // by the thread's number in the file: the last one written
  std::vector<Quality> of_allocations_;   // the same
  std::vector<std::int16_t> cpus_;        // by the same: the last one written
  std::vector<std::int64_t> heap_bytes_;  // by state: the last size written
  Tick tick_;
  std::int64_t idle_ = 0;  // not written yet
};

}  // namespace luaspy
