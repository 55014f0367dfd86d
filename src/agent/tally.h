#pragma once
// What an agent has done until now, for those who ask.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/known_programs.h"
#include "agent/recent_heaps.h"
#include "events/event_tables.h"
#include "sampling/sample_sink.h"

namespace luaspy {

class Tally : public SampleSink {
 public:
  struct Of {
    int pid = 0;
    std::string name, luas;  // of its program; "Lua 5.4.6, LuaJIT 2.1.0-beta3"
    std::int64_t samples = 0, lost = 0, stopped_ns = 0;
    std::int64_t heap_bytes = 0, collections = 0;  // of its Luas: RecentHeaps
  };
  struct Sums {
    std::vector<Of> processes;                           // those that are sampled, by pid
    std::int64_t samples = 0, lost = 0, stopped_ns = 0;  // of all, those included that have ended
  };

  // `tables`: what the numbers of samples stand for; they must outlive it.
  explicit Tally(const EventTables& tables) : tables_(tables) {}

  void add(ThreadId thread, const Tick& tick, const Sample& sample) override;
  void add_idle(ThreadId, std::int64_t) override {}
  void add_waiting(ThreadId, std::int64_t) override {}
  void add_loss(Loss loss, std::int64_t count) override;
  // Those that are sampled from now on; what is not among them is forgotten.
  void set_programs(const std::map<KnownPrograms::Key, KnownPrograms::Known>& programs);
  // May be called by any thread.
  Sums sums() const;

 private:
  const EventTables& tables_;
  mutable std::mutex lock_;  // of what follows
  struct Program {
    Of of;
    RecentHeaps heaps;
  };
  mutable std::map<KnownPrograms::Key, Program> programs_;
  Sums sums_;  // without processes
};

}  // namespace luaspy
