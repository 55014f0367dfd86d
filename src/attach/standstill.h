#pragma once
// A whole target at one instant, for looks that read more than one stack: its running threads are
// all stopped, its sleeping ones are left alone, since stopping one would end its system call;
// whether one of them has run meanwhile is found out afterwards.

#include <memory>
#include <vector>

#include "attach/target.h"

namespace luaspy {

class Standstill {
 public:
  // Stops what runs, until nothing runs or has come anew: some 20 µs a running thread. If one does
  // not come, all run again, and it is disturbed.
  explicit Standstill(Target& target);
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;
  ~Standstill() { resume(); }

  struct Member {
    Thread* thread = nullptr;            // of the target's Process: valid until that lists its threads anew
    ThreadState state;                   // sleeping: with its sp and pc
    std::uint64_t run_count = 0;         // sleeping: counted before it was seen to sleep
    std::unique_ptr<Target::Stop> stop;  // running: with its registers
  };
  const std::vector<Member>& members() const { return members_; }
  bool has_stopped() const;  // a thread ran, and had to be stopped

  // Has no sleeping thread run since, nor one that could not be stopped? Ask before what was read
  // is believed.
  bool undisturbed() const;

  // Lets all run. How long the first one that was stopped stood still; 0 if none was. The
  // destructor does the same.
  std::chrono::nanoseconds resume();

 private:
  bool add(Thread& thread);
  bool forget_ended(const std::vector<std::shared_ptr<Thread>>& threads);

  Target& target_;
  std::vector<Member> members_;
  bool disturbed_ = false;
};

}  // namespace luaspy
