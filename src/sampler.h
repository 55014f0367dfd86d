#pragma once
// ONE TICK of one thread: does it run, the stop, what is read in it, and what becomes of that once the thread runs again.
// This is the page to read first; everything else is a detail of one of its lines.

#include <map>
#include <memory>
#include <optional>

#include "attach/near_thread.h"
#include "attach/standstill.h"
#include "stack_reader.h"

namespace luaspy {

struct SamplerOptions {
  MergeOptions merging;
  bool idle = false;                // sample sleeping threads too
  WalkLimits limits;
  std::shared_ptr<NearThread> near{};   // stops each thread from its own CPU: worth it for more than a few stops. One for all samplers: it claims CPUs
  std::chrono::milliseconds patience{50};  // how long a thread may take to stop
};

class Sampler {
 public:
  Sampler(Target& target, SamplerOptions options);

  // One look at one thread. nullopt: it sleeps, and sleeping threads were not asked for.
  // A running thread is stopped, a sleeping one is read as it is: interrupting it would end its system call. Its stack is told once: while
  // it sleeps on, samples say `again`.
  std::optional<Sample> sample(Thread& thread);

  // A look at a thread that stands still, with others: what it read, and whatever else is asked of reader().snapshot(), is of the same instant
  // until the standstill ends. It settles everything while the threads stand still, which takes long the first time: sample() before.
  Sample look(const Standstill::Member& member);

  // Call between ticks: what could wait until no thread stands still.
  void settle();

  StackReader& reader() { return reader_; }

 private:
  struct PerThread {
    StackReader::Prediction predicted;
    int cpu = -1;                     // where it ran when that was asked last
    system::Clock::time_point cpu_asked;
    bool slept = false;               // when it was looked at last
    int awake = 0;                    // looks since then
    std::uint64_t run_count = 0;      // counted while, or before, it slept: it sleeps on while the count is the same; 0: not known
  };

  std::optional<Sample> look_at_running(Thread& thread, PerThread& memo);
  std::optional<Loss> stop_and_read(Thread& thread, PerThread& memo, Registers& registers, std::int64_t& stopped_ns);
  std::optional<Sample> fell_asleep(Thread& thread, PerThread& memo, std::int64_t stopped_ns);
  void finish_sleeping(Thread& thread, const ThreadState& state, const Registers& registers, bool readable, Sample& sample, StackReader::Prediction& predicted);
  Sample look_at_sleeping(Thread& thread, const ThreadState& state, PerThread& memo);

  Target& target_;
  SamplerOptions options_;
  StackReader reader_;
  std::map<pid_t, PerThread> threads_;
};

}  // namespace luaspy
