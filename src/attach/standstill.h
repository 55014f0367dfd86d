#pragma once
// A whole target at one instant, for looks that read more than one stack. All running threads are
// stopped. Sleeping ones are left alone, because a stop would interrupt their system call;
// undisturbed() checks afterwards whether any of them has run.

#include <vector>

#include "attach/held_thread.h"

namespace luaspy {

class Standstill {
 public:
  // Stops running threads until none runs and no new one has appeared: some 20 µs per running
  // thread. If one does not stop in time, all are resumed, and the standstill counts as disturbed.
  explicit Standstill(Target& target);
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;
  ~Standstill() { resume(); }

  const std::vector<HeldThread>& members() const { return members_; }
  bool has_stopped() const;  // a thread was running and had to be stopped

  // True if no sleeping thread has run since, and every running one could be stopped. Check this
  // before trusting what was read.
  bool undisturbed() const;

  // Resumes all threads, as the destructor does. Returns how long the first one that was stopped
  // stood still; 0 if none was.
  std::chrono::nanoseconds resume();

 private:
  bool add(const std::shared_ptr<Thread>& thread);
  bool forget_ended(const std::vector<std::shared_ptr<Thread>>& threads);

  Target& target_;
  std::vector<HeldThread> members_;
  bool disturbed_ = false;
};

}  // namespace luaspy
