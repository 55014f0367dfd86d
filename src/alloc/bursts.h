#pragma once
// Bursts: some calls of a Lua's allocation function in a row are trapped (attach/call_trap.h), and the
// last one is a sample. What decides when is in allocation_loop.cpp.
//
//   prepare   the trap is set up, and the thread is traced from now on, so that a burst begins at once
//   arm       while the thread stands still, or while it runs, if a stop could end one of its system calls
//   wait      for the signal that the trap's last call sends
//   return    the thread goes on until that call returns: its stack is read, and the block has an address
//   use       the thread goes on until it calls the function again: what the block is for can be read now

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "alloc/allocation_loop.h"
#include "alloc/burst_pace.h"
#include "alloc/byte_gate.h"
#include "alloc/call_kinds.h"
#include "alloc/reaper.h"
#include "alloc/trap_cost.h"

namespace luaspy {

// A Lua, and the thread that was last seen to run it.
struct Allocator {
  Allocator(Session& its, std::shared_ptr<Thread> runs, const Activation& found, std::uint64_t seed)
      : session(its), thread(std::move(runs)), lua(*found.lua), G(found.G), gate(seed), look(its.target().memory()) {}

  Session& session;
  std::shared_ptr<Thread> thread;
  const Lua& lua;
  Address G;
  ByteGate gate;
  Address function = 0;  // with which it allocates; 0: not read yet
  StackReader::Prediction predicted;
  Sampler::Look look;
  std::unique_ptr<HeapReader> objects;  // nullptr: its lists are not known
  system::Clock::time_point probed{};
  std::int64_t heap_bytes = 0;  // then
  bool gone = false;
  bool may_sleep = true;      // its thread sleeps now and then: a stop could come in a system call
  std::int64_t switches = 0;  // voluntary ones of its thread, without those for luaspy
  int calm_looks = 0;         // in a row, without such a switch
  double kept_bytes = 0;      // that bursts stood for that gave no sample: the next one stands for them
};

// The trap of a function in a thread, whichever Lua calls it.
struct Trap {
  std::unique_ptr<CallTrap> calls;
  std::int64_t number = 0;  // that it is set to, for the next burst; 0: not yet
};

// What lasts from one run of the loop to the next.
struct BurstState {
  explicit BurstState(double max_cost) : pace(max_cost / 100, seed()) {}

  std::random_device seed;
  BurstPace pace;
  TrapCost trap_cost;
  BurstSums usual;  // of all bursts
  CallKinds kinds;
  LearnedUses uses;
  Reaper reaper;
  std::map<std::pair<pid_t, Address>, Trap> traps;  // by thread and function
  std::set<pid_t> refused_threads;
  system::Clock::time_point refused_at{};
};

// Of one run. Only one thread may use it; whatever it still traces is released when that thread ends.
class Bursts {
 public:
  // What the loop knows.
  struct Loop {
    system::Clock::time_point start;  // of the recording
    std::function<bool()> is_over;
    std::function<bool()> is_alone;  // only one Lua is known
    std::function<void(Session&, const std::shared_ptr<Thread>&, const Activation&)> learn;
    std::function<void()> before_use;  // AllocationLoopOptions::before_use
  };
  Bursts(BurstState& state, AllocationSink& sink, AllocationCounts& counts, Loop loop)
      : state_(state), sink_(sink), counts_(counts), loop_(std::move(loop)) {}

  // Everything that a burst needs, so that it can begin at once. False: the allocator is gone.
  bool prepare(Allocator& allocator);
  // A burst that stands for so many bytes.
  void take(Allocator& allocator, double bytes);
  // Sleeps. A traced thread that a signal stops meanwhile goes on at once.
  void rest(system::Clock::time_point until);
  void note_refusal(pid_t tid, const Error& why);

  bool traces(pid_t tid) const { return traced_.contains(tid); }
  bool has_pending(pid_t tid) const { return tracer_.has_pending(tid); }
  void let_go_pending() { tracer_.let_go_pending(); }
  // It has ended.
  void forget(pid_t tid) { traced_.erase(tid); }
  // How often the thread has stood still for a burst.
  std::int64_t stops(pid_t tid) { return stops_[tid]; }
  // Ends what waits, until it is cleared.
  system::Alarm& alarm() { return alarm_; }

 private:
  enum class Outcome { sampled, lost };

  void take_late_signals();
  void hear(pid_t tid, const system::WaitStatus& status);
  bool trace(Allocator& allocator, const Trap& trap);
  bool refuse(Allocator& allocator, const Error& why);
  Outcome burst(Allocator& allocator, double bytes);
  bool arm(Allocator& allocator, Trap& trap, std::unique_ptr<Stop> stop);
  void note_trapped(CallTrap& trap);
  void note_cost();
  std::unique_ptr<Stop> hold(Allocator& allocator);
  std::unique_ptr<Stop> arrival(pid_t tid, system::Clock::time_point end);
  std::unique_ptr<Stop> wait(Allocator& allocator, const Trap& trap);
  std::unique_ptr<Stop> await_return(Allocator& allocator, CallTrap& trap, std::unique_ptr<Stop> stop);
  BlockUse find_use(Allocator& allocator, Trap& trap, const Block& block);
  bool go_to_next_call(Allocator& allocator, Trap& trap, std::unique_ptr<Stop> stop);
  Outcome sample(Allocator& allocator, Trap& trap, std::unique_ptr<Stop> stop, system::Clock::time_point armed,
                 double bytes);

  BurstState& state_;
  AllocationSink& sink_;
  AllocationCounts& counts_;
  const Loop loop_;
  struct UnderWay {
    std::vector<CallTrap::Call> calls;
    BurstSums sums;                     // of these
    system::Clock::time_point armed{};  // when the thread went on last
    std::size_t costed = 0;             // calls whose cost is in took_ns
    std::int64_t took_ns = 0;           // of the program's time
    void begin() {                      // without giving up memory, which would have to be allocated in a stop
      calls.clear();
      sums = {}, armed = {}, costed = 0, took_ns = 0;
    }
  } under_way_;
  system::Alarm alarm_;
  Tracer tracer_{std::chrono::milliseconds(50)};
  // By thread: these run, traced, until a signal stops them. Those of a session that was dropped stay.
  std::map<pid_t, std::unique_ptr<Stop>> traced_;
  std::map<pid_t, std::int64_t> stops_;
};

}  // namespace luaspy
