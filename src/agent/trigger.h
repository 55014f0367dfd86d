#pragma once
// Conditions on which an agent writes a snapshot by itself.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/recent_heaps.h"
#include "base/result.h"
#include "events/event_tables.h"
#include "sampling/sample_sink.h"
#include "system/calls.h"

namespace luaspy {

struct Trigger {
  enum class Kind : std::uint8_t { cpu, heap, looks_stuck } kind = Kind::cpu;
  double limit = 0;  // % of one CPU; bytes; s
  std::string text;  // as it was given
};

// "cpu > 90": a process has used more than 90 % of one CPU for five seconds. "heap > 1G": the heaps of its Lua states,
// of those that have run in the last minute, as samples find them; K, M and G are powers of 1024. "looks-stuck 5s":
// each sample of a thread for so long has found it running in the same Lua functions, called by the same ones, at any
// line. An Error says what is allowed.
Result<Trigger> parse_trigger(const std::string& text);

class TriggerWatch : public SampleSink {
 public:
  // What happens, when it does: the process, and a sentence. False: not now; it may happen again at the next look.
  using Act = std::function<bool(int pid, const std::string& why)>;
  // The CPU time in ns that a process has used; nullopt: it is gone.
  using CpuTime = std::function<std::optional<std::int64_t>(int pid)>;
  // `tables`: what the numbers of samples stand for; they must outlive it. `hold_off`: from one act to the next for the
  // same process.
  TriggerWatch(const EventTables& tables, std::vector<Trigger> triggers, system::Clock::duration hold_off, Act act,
               CpuTime cpu_time);

  void begin(system::Clock::time_point start) override { start_ = start; }
  void add(ThreadId thread, const Tick& tick, const Sample& sample) override;
  void add_idle(ThreadId thread, std::int64_t count) override;
  void add_waiting(ThreadId, std::int64_t) override {}
  void add_loss(Loss, std::int64_t) override {}
  void end(int pid, const Tick&) override { processes_.erase(pid); }
  void tables_renewed() override;
  // Tests the conditions, once a second.
  void look(const LoopCounts&) override { test(system::Clock::now()); }
  void test(system::Clock::time_point now);

 private:
  using Time = system::Clock::time_point;
  struct Process {
    RecentHeaps heaps;
    std::deque<std::pair<Time, std::int64_t>> cpu;  // its clock, once a second
    Time seen{};
    std::optional<Time> acted;
    double stuck_s = 0;  // the longest of its threads at this time
  };
  struct Thread {
    std::uint64_t functions = 0;  // 0: no Lua
    Time since{}, seen{};
  };
  std::uint64_t functions_of(StackId stack);
  void watch_functions(ThreadId thread, Time at, StackId stack);
  // nullopt: not known yet.
  static std::optional<double> value_of(const Trigger& trigger, Process& process, Time now);

  const EventTables& tables_;
  const std::vector<Trigger> triggers_;
  const system::Clock::duration hold_off_;
  const Act act_;
  const CpuTime cpu_time_;
  bool watches_functions_ = false, watches_cpu_ = false;
  Time start_{}, tested_{};
  std::map<int, Process> processes_;
  std::unordered_map<ThreadId, Thread> threads_;
  std::unordered_map<StackId, std::uint64_t> functions_;  // functions_of(), kept
};

}  // namespace luaspy
