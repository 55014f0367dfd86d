#pragma once
// A thread that stands still while it is read: it is stopped if it runs, and left as it is if it sleeps,
// because a stop would interrupt its system call.

#include <memory>

#include "attach/target.h"

namespace luaspy {

class HeldThread {
 public:
  // `target` must outlive it. The thread is held until resume() or the end of this object.
  HeldThread(Target& target, std::shared_ptr<Thread> thread);

  // It is asleep, or has stopped. If not, it has ended, or does not stop.
  bool stands_still() const;
  // Of a sleeping thread the kernel shows only sp and pc; both are 0 if it does not show them.
  Registers registers() const;
  // A sleeping thread has not run since. Check this before trusting what was read.
  bool has_not_run() const;

  Thread& thread() const { return *thread_; }
  // Sleeping: what it sleeps in.
  const ThreadState& state() const { return state_; }
  bool sleeps() const { return state_.kind == ThreadState::Kind::sleeping; }
  std::uint64_t run_count() const { return run_count_; }  // counted before it was seen to sleep
  const Stop* stop() const { return stop_.get(); }        // nullptr: it sleeps, or has ended
  // Returns how long it was stopped; 0 if it was not.
  std::chrono::nanoseconds resume() { return stop_ != nullptr ? stop_->resume() : std::chrono::nanoseconds(); }

 private:
  std::shared_ptr<Thread> thread_;
  std::uint64_t run_count_;
  ThreadState state_;
  std::unique_ptr<Stop> stop_;
};

}  // namespace luaspy
