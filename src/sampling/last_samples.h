#pragma once
// A thread that sleeps on is not read again: its samples only say so. Here they become whole.

#include <cstdint>

#include "base/sample.h"
#include "events/event_tables.h"

namespace luaspy {

class LastSamples {
 public:
  // `tables` must outlive it.
  explicit LastSamples(EventTables& tables) : tables_(tables) { make_room(); }

  // If the sample sets `again`, it becomes a copy of its thread's last one, with its own time of the stop.
  // A thread that has none: Loss::left_out.
  void complete(ThreadId thread, std::int64_t at_ns, Sample& sample);

  // The tables have more than a recording without end may take: `most_stacks` different ones and their outer parts, or
  // `most_threads`; or, if they had more than half of that to begin with, twice as many as then. Whoever counts samples
  // of a process has a few bytes for each of these.
  static constexpr std::size_t most_stacks = std::size_t{1} << 15, most_threads = std::size_t{1} << 14;
  bool tables_are_full() const;
  // Empties the tables, except for what threads are asleep in. All numbers given so far lose their meaning. A thread
  // that was not seen for 10 s has probably ended.
  void renew_tables(std::int64_t now_ns);

 private:
  struct Last {
    Sample sample;
    std::int64_t at_ns = -1;  // -1: there is none
  };
  void make_room();

  EventTables& tables_;
  std::size_t stacks_room_ = 0, threads_room_ = 0;
  ById<ThreadId, Last> last_;
};

}  // namespace luaspy
