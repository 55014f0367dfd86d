#pragma once
// ONE LOOK at one thread: whether it runs, the stop, what is read during it, and how that is
// evaluated once the thread runs again. The CPU samplers (cpu_samplers.h) decide when to look, and from
// which CPU; dump and the tests look directly, with sample().

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "attach/halt.h"
#include "attach/source_files.h"
#include "attach/standstill.h"
#include "attach/switch_log.h"
#include "base/kernel_chain.h"
#include "events/event_tables.h"
#include "stack/kernel_symbols.h"
#include "stack/stack_reader.h"
#include "system/calls.h"

namespace luaspy {

struct SamplerOptions {
  MergeOptions merging;
  bool idle = false;     // sample sleeping threads too
  LabelChoice labels{};  // what samples are labelled with
  WalkLimits limits;
  std::chrono::milliseconds patience{50};         // how long a thread may take to stop
  std::shared_ptr<KnownFiles> known_files{};      // shared by the processes of a tree; nullptr: each has its own
  bool looks_once = false;                        // nothing can be learned for later looks
  std::shared_ptr<const KernelSymbols> kernel{};  // samples show where threads are in the kernel; nullptr: not
  std::shared_ptr<EventTables> tables{};          // shared by the processes of a tree; nullptr: each has its own
};

class Sampler {
 public:
  Sampler(Target& target, const SamplerOptions& options);

  // What one look has read from one thread: filled during the stop, evaluated later.
  struct Look {
    explicit Look(const Memory& target) : reading(target) {}
    StackReader::Look reading;
    ThreadState state;                   // sleeping: what it waits in
    Halt::Kind halt = Halt::Kind::none;  // sleeping: why it could not continue even after its wait
    bool at_system_call = false;         // it was stopped at the return from a system call
    KernelChain kernel;  // where the tick found it, set by the CPU sampler after the look; empty: not in the kernel
    pid_t tid = 0;       // set by the CPU sampler after the look; 0: not
    std::string kernel_text;         // sleeping: Thread::kernel_stack()
    Thread::Schedule schedule;       // as of the stop
    system::Clock::time_point seen;  // when it was seen to be stopped
    std::int64_t stopped_ns = 0;     // how long it was stopped, counted from the request
    std::int64_t held_ns = 0;        // the same, counted from `seen`

    // A thread that the tick found in the kernel has executed, even if it fell asleep there right after.
    bool sleeps() const { return state.kind == ThreadState::Kind::sleeping && kernel.empty(); }
  };

  // During read_stopped(), read_without_stop() and read_asleep(), finish() may run in another
  // thread. The caller must hold the lock of reader(). read_stopped() reads a stopped thread and
  // resumes it. Loss::none: finish() can be called.
  Loss read_stopped(Stop& stop, Thread& thread, const StackReader::Prediction& predicted, Look& look);
  // The same in two halves, for a caller that does not release the thread between them but lets it go on:
  // read_held() while it is stopped, read_after() once it runs, whatever read_held() has returned.
  Loss read_held(const Stop& stop, Thread& thread, const StackReader::Prediction& predicted, Look& look);
  void read_after(const StackReader::Prediction& predicted, Look& look);
  // Reads a thread whose CPU the calling thread has taken: `lost` is the last of its switches.
  // Loss::elsewhere: the thread was given another CPU while it was read.
  Loss read_without_stop(const SwitchLog& switches, const SwitchLog::Switch& lost,
                         const StackReader::Prediction& predicted, Look& look);
  // Reads a thread that sleeps, as `state` says, without a stop: a stop would interrupt its system
  // call. Loss::moved: it ran while it was read.
  Loss read_asleep(Thread& thread, const ThreadState& state, const StackReader::Prediction& predicted, Look& look);
  // A sample, and what it was made of: nullptr if it is a loss, or `again`. That is valid until the next
  // look.
  struct Sampled {
    Sample sample;
    StackReader::Finished* from = nullptr;
  };
  // Makes a sample of what was read. Its loss is `incomplete` if the prediction was wrong, so that
  // the stop has not read everything that was needed; the next looks do not rely on it then.
  Sampled finish(Look& look, StackReader::Prediction& predicted);

  // A complete look. nullopt: the thread sleeps, and sleeping threads were not requested. A running
  // thread is stopped, a sleeping one is read as it is. A sleeping thread's stack is reported once;
  // while it stays asleep, later samples only set `again`. `idle`: instead of that of the options.
  std::optional<Sampled> sample(Thread& thread) { return sample(thread, options_.idle); }
  std::optional<Sampled> sample(Thread& thread, bool idle);

  // A look at a thread in a standstill. What it reads, and everything else read through its
  // snapshot(), is of the same instant until the standstill ends. It also settles everything while the
  // threads are stopped, which takes long the first time: call sample() before.
  Sampled look(const HeldThread& member);

  // Call between ticks: does the work that can wait until no thread is stopped.
  void do_deferred_work();

  StackReader& reader() { return reader_; }
  // Where each thread was when it was last found executing, by its number. By the thread that calls finish().
  struct LastStop {
    Address sp = 0;
    system::Clock::time_point seen;
  };
  const std::map<pid_t, LastStop>& last_stops() const { return last_stops_; }
  // What the numbers of samples stand for.
  EventTables& tables() { return *options_.tables; }
  const SamplerOptions& options() const { return options_; }

 private:
  struct PerThread {
    StackReader::Prediction predicted;
    bool slept = false;           // at the last look
    int awake = 0;                // number of looks since then
    std::uint64_t run_count = 0;  // read while it slept, or before: it is still asleep as long as the count stays the
                                  // same; 0: unknown
  };

  PerThread& memo_of(const Thread& thread) { return threads_[{thread.tid(), thread.started()}]; }
  std::optional<Sampled> look_at_running(Thread& thread, PerThread& memo, bool idle);
  std::optional<Sampled> fell_asleep(Thread& thread, PerThread& memo, std::int64_t stopped_ns, bool idle);
  Sampled look_at_sleeping(Thread& thread, const ThreadState& state, PerThread& memo);
  void add_frame(Sample& sample, const Frame& frame);  // inside of all others

  Target& target_;
  SamplerOptions options_;
  SourceFiles sources_;
  StackReader reader_;
  Look look_;                                                    // of sample() and look()
  std::map<std::pair<pid_t, std::int64_t>, PerThread> threads_;  // by number and Thread::started()
  std::map<pid_t, LastStop> last_stops_;
  std::uint64_t debug_files_ = 0;             // debug_files_come() when symbols were read last
  system::Clock::time_point symbols_read_{};  // again
};

// A sample of a thread that stays asleep.
Sample asleep_again();

}  // namespace luaspy
