#pragma once
// Bursts: some calls of a Lua's allocation function in a row are trapped (attach/call_trap.h), and the
// last one is a sample. What decides when is in allocation_loop.cpp.
//
//   prepare   the trap is set up, and the thread is traced from now on, so that a burst begins at once
//   arm       while the thread stands still, or while it runs, if a stop could end one of its system calls
//   wait      for the signal that the trap's last call sends
//   return    the thread goes on until that call returns: its stack is read, and the block has an address
//   use       the thread goes on until it calls the function again: what the block is for can be read now
//
// A thread that sleeps may take minutes to make the calls of a burst, so a burst stays open meanwhile, and
// others begin in other threads. A burst is interrupted, and continued later, when luaspy does something
// that takes longer than a thread may stand still, and when another Lua of the same thread has its turn.

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "allocations/allocation_sink.h"
#include "allocations/allocator.h"
#include "allocations/burst_pace.h"
#include "allocations/call_kinds.h"
#include "allocations/reaper.h"
#include "allocations/traced_threads.h"
#include "allocations/trap_cost.h"

namespace luaspy {

using Allocators = std::vector<std::unique_ptr<Allocator>>;

// The trap of a thread: of one function, whichever Lua calls it. A processor has debug registers for one.
struct Trap {
  std::unique_ptr<CallTrap> calls;
  Address function = 0;
  std::int64_t number = 0;  // that it is set to; 0: not known
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
  std::map<pid_t, Trap> traps;  // by thread
  std::set<pid_t> refused_threads;
  system::Clock::time_point refused_at{};
};

// Of one run. Only one thread may use it.
class Bursts {
 public:
  // What the loop knows.
  struct Loop {
    system::Clock::time_point start;  // of the recording
    std::function<bool()> is_over;
    std::function<Allocators&()> allocators;
    std::function<void(Session&, const std::shared_ptr<Thread>&, const ActiveState&)> add_allocator;
    // A burst has ended that trapped calls that grow by so many bytes: in truth, and as far as each of
    // them counts (BurstSums).
    std::function<void(Allocator&, double bytes, double counted)> pass;
    std::function<void()> before_use;  // AllocationLoopOptions::before_use
  };
  Bursts(BurstState& state, AllocationSink& sink, AllocationCounts& counts, TracedThreads& threads, Loop loop)
      : state_(state), sink_(sink), counts_(counts), threads_(threads), loop_(std::move(loop)) {}
  Bursts(const Bursts&) = delete;
  Bursts& operator=(const Bursts&) = delete;
  virtual ~Bursts() = default;

  // Everything that a burst needs, so that it can begin at once. False: the allocator is gone.
  bool prepare(Allocator& allocator);
  // A burst begins that stands for so many bytes. It may still be open when this returns.
  void start(Allocator& allocator, double bytes);
  // Its burst is open. False: its heap changes, but not by calls that are trapped; the burst has been given up.
  bool watch(Allocator& allocator);
  // Open bursts are interrupted: no thread comes to stand still until they are continued.
  void interrupt();
  void go_on();
  // Without a sample: the next burst stands for its bytes, too.
  void give_up(Allocator& allocator);
  // Sleeps. A traced thread that a signal stops meanwhile is looked at, if that is the end of a burst, and
  // goes on at once.
  void sleep_until(system::Clock::time_point until);
  void record_refusal(pid_t tid, const Error& why);

  // So that a traced thread can be looked at: if it runs, it is not traced any more. False: it did not stop.
  // Call while no burst is armed.
  bool let_go(const Thread& thread);

  bool traces(pid_t tid) const { return traced_.contains(tid); }
  // It has ended.
  void forget(pid_t tid) { traced_.erase(tid); }
  // How often the thread has stood still for a burst.
  std::int64_t stops(pid_t tid) { return stops_[tid]; }

 protected:
  enum class Outcome { sampled, lost };
  // The burst's last call, at which the thread stands still, becomes a sample. The thread goes on.
  virtual Outcome sample(Allocator& allocator, Trap& trap, std::unique_ptr<TracedThread> stop);

 private:
  enum class Arrival { awaited, by_the_way };  // by_the_way: luaspy waits for another thread

  void drain_late_signals();
  void handle(pid_t tid, const system::WaitStatus& status, Arrival how);
  void listen(system::Clock::time_point until, const Allocator* until_it_ends, Arrival how);
  Allocator* armed_in(pid_t tid);
  void set_number(Trap& trap, std::int64_t number);
  bool begin(Allocator& allocator, double bytes);
  std::int64_t draw(const Allocator& allocator);
  bool is_armed(const Allocator& allocator) const { return allocator.burst.is_open && allocator.burst.is_armed; }
  bool trace(Allocator& allocator, const Trap& trap);
  bool refuse(Allocator& allocator, const Error& why);
  bool make_room(Allocator& allocator);
  bool arm(Allocator& allocator, std::unique_ptr<TracedThread> stop);
  bool release(Allocator& allocator, Trap& trap, std::unique_ptr<TracedThread> stop);
  void disarm(Allocator& allocator);
  void end(Allocator& allocator, Outcome outcome);
  void arrived(Allocator& allocator, std::unique_ptr<TracedThread> stop, Arrival how);
  void record_cost(OpenBurst& burst);
  std::unique_ptr<TracedThread> hold(Allocator& allocator);
  std::unique_ptr<TracedThread> arrival(pid_t tid, system::Clock::time_point end);
  std::unique_ptr<TracedThread> await_return(Allocator& allocator, CallTrap& trap, std::unique_ptr<TracedThread> stop);
  std::unique_ptr<TracedThread> next_call(const Thread& thread);
  BlockUse find_use(Allocator& allocator, const Allocator& caller, Trap& trap, const Block& block);
  bool go_to_next_call(Allocator& allocator, Trap& trap, std::unique_ptr<TracedThread> stop);
  struct Looked {
    Loss loss = Loss::not_stopped;
    bool returned = false;  // the call, when the stack was read
    system::Clock::time_point resumed{};
  };
  Allocator* caller_of(Allocator& allocator);
  Looked look(Allocator& allocator, Trap& trap, std::unique_ptr<TracedThread> stop, AllocationSample& found);

  BurstState& state_;
  AllocationSink& sink_;
  AllocationCounts& counts_;
  TracedThreads& threads_;
  const Loop loop_;
  // By thread: these run, traced, until a signal stops them. Those of a session that was dropped stay.
  std::map<pid_t, std::unique_ptr<TracedThread>> traced_;
  std::map<pid_t, std::int64_t> stops_;
};

}  // namespace luaspy
