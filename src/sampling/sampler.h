#pragma once
// ONE LOOK at one thread: does it run, the stop, what is read in it, and what becomes of that once
// the thread runs again. Who looks when, and from which CPU, is the stoppers' business
// (stoppers.h); dump and the tests look by themselves, with sample().

#include <map>
#include <optional>

#include "attach/halt.h"
#include "attach/standstill.h"
#include "attach/switch_log.h"
#include "stack/stack_reader.h"
#include "system/calls.h"

namespace luaspy {

struct SamplerOptions {
  MergeOptions merging;
  bool idle = false;  // sample sleeping threads too
  WalkLimits limits;
  std::chrono::milliseconds patience{50};  // how long a thread may take to stop
};

class Sampler {
 public:
  Sampler(Target& target, const SamplerOptions& options);

  // What one look has read of one thread: made in the stop, finished later.
  struct Look {
    explicit Look(const Memory& target) : reading(target) {}
    StackReader::Look reading;
    ThreadState state;                   // of one that sleeps: what it waits in
    Halt::Kind halt = Halt::Kind::none;  // the same: why it could not go on whatever it waits in
    bool at_system_call = false;         // it was stopped at the return from a system call
    Thread::Schedule schedule;           // as of the stop
    system::Clock::time_point seen;      // when it was seen to stand still
    std::int64_t stopped_ns = 0;         // how long it stood still, from the request on
    std::int64_t held_ns = 0;            // the same, from `seen` on
  };

  // In these, finish() may be at work in another thread. The caller has the lock of reader().
  // Reads a thread that stands still, and lets it run. Loss::none: there is something to finish.
  Loss read_stopped(Stop& stop, Thread& thread, const StackReader::Prediction& predicted, Look& look);
  // Reads a thread whose CPU the calling thread has taken: it is `lost`, the last of its switches.
  // Loss::elsewhere: it was given another one meanwhile.
  Loss read_without_stop(const SwitchLog& switches, const SwitchLog::Switch& lost,
                         const StackReader::Prediction& predicted, Look& look);
  // Reads one that sleeps, as `state` says, without a stop: that would end its system call.
  // Loss::moved: it ran meanwhile.
  Loss read_asleep(Thread& thread, const ThreadState& state, const StackReader::Prediction& predicted, Look& look);
  // What was read as a sample. Its loss is `incomplete` if the stop had not read what it should
  // have; the next looks take care then.
  Sample finish(Look& look, StackReader::Prediction& predicted);

  // A look from begin to end. nullopt: it sleeps, and sleeping threads were not asked for. A
  // running thread is stopped, a sleeping one is read as it is. Its stack is reported once; while
  // it stays asleep, later samples only set `again`.
  std::optional<Sample> sample(Thread& thread);

  // A look at a thread that stands still, with others: what it read, and whatever else is asked of
  // reader().snapshot(), is of the same instant until the standstill ends. It settles everything
  // while the threads stand still, which takes long the first time: sample() before.
  Sample look(const Standstill::Member& member);

  // Call between ticks: what could wait until no thread stands still.
  void settle();

  StackReader& reader() { return reader_; }
  const SamplerOptions& options() const { return options_; }

 private:
  struct PerThread {
    StackReader::Prediction predicted;
    bool slept = false;           // when it was looked at last
    int awake = 0;                // looks since then
    std::uint64_t run_count = 0;  // counted while, or before, it slept: it sleeps on while the count is the same; 0:
                                  // not known
  };

  std::optional<Sample> look_at_running(Thread& thread, PerThread& memo);
  std::optional<Sample> fell_asleep(Thread& thread, PerThread& memo, std::int64_t stopped_ns);
  Sample look_at_sleeping(Thread& thread, const ThreadState& state, PerThread& memo);

  Target& target_;
  SamplerOptions options_;
  StackReader reader_;
  Look look_;  // of sample() and look()
  std::map<pid_t, PerThread> threads_;
};

// A sample of a thread that stays asleep.
Sample asleep_again();

}  // namespace luaspy
