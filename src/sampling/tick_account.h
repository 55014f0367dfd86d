#pragma once
// EACH TICK COUNTS ONCE. At each tick of a recording, a thread has executed, slept, waited for a CPU or ended. Most
// ticks are looked at by a CPU sampler when they come. Those that no CPU sampler came to are accounted for at the next
// one: by how long the thread has been on a CPU since then.

#include <atomic>
#include <cstdint>

#include "attach/process.h"
#include "system/calls.h"

namespace luaspy {

// A tick, when it is handled.
struct TickMoment {
  std::int64_t number = 0;
  system::Clock::time_point due;   // when it should have come
  system::Clock::time_point woke;  // when the CPU sampler was there
  std::int64_t skipped = 0;        // ticks of the recording that were left out so far
};

// Ticks of a thread that are no TickResult, until the main thread has taken them.
struct UnseenTicks {
  std::atomic<std::int64_t> idle = 0, waited = 0;                                   // it slept; it had no CPU
  std::atomic<std::int64_t> late = 0, elsewhere = 0, not_stopped = 0, in_vain = 0;  // it executed: lost
};

// Of one thread; by one thread at a time (TrackedThread::claim).
class TickAccount {
 public:
  // Its ticks begin with the first one that is accounted for. `now`: when it was seen first.
  explicit TickAccount(system::Clock::time_point now) : at_(now) {}

  // Accounts for a tick that is handled now, and for those since the last one that were not. `now`: the thread's
  // schedule if it is known, nullptr: it is read if it is needed. `slept`: at this tick.
  void account(const TickMoment& moment, std::chrono::nanoseconds interval, const Thread& thread,
               const Thread::Schedule* now, bool slept, UnseenTicks& unseen);
  // It was found on another CPU: the ticks since the last one were lost for that.
  void move() { moved_ = true; }
  // It has ended, and has no more ticks.
  void end();
  // A look has read its schedule, at that time.
  void record(const Thread::Schedule& schedule, system::Clock::time_point at) {
    schedule_ = schedule, schedule_at_ = at;
  }

  // Of the last tick that was accounted for; number() is -1 if there is none.
  std::int64_t number() const { return number_; }
  system::Clock::time_point at() const { return at_; }
  std::int64_t passed_ns() const { return passed_ns_; }  // since the one before
  // As read last, then or before.
  const Thread::Schedule& schedule() const { return schedule_; }
  system::Clock::time_point schedule_at() const { return schedule_at_; }
  // By any thread.
  bool slept() const { return slept_; }
  // What it sleeps in could not be read: it is tried at the next tick.
  void read_again() { slept_ = false; }

 private:
  std::int64_t number_ = -1;
  system::Clock::time_point at_;
  std::int64_t passed_ns_ = 0;
  std::int64_t skipped_ = 0;  // TickMoment::skipped then
  std::atomic<bool> slept_ = false;
  bool moved_ = false;  // since then
  Thread::Schedule schedule_;
  system::Clock::time_point schedule_at_;
};

}  // namespace luaspy
