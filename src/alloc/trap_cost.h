#pragma once
// What trapped calls cost the program. Between two of them there is the trap, and what the program does
// anyway: nothing, or a long pause. So it is between the instant at which a thread that stood still goes
// on and its first call: there the thread has to get its CPU again.

#include <cstdint>
#include <span>

#include "attach/call_trap.h"

namespace luaspy {

class TrapCost {
 public:
  // Learns from the calls of a thread that went on at `resumed`, in the order of time.
  void add(system::Clock::time_point resumed, std::span<const CallTrap::Call> calls);
  // ns, from `resumed` to the last of these calls.
  std::int64_t of(system::Clock::time_point resumed, std::span<const CallTrap::Call> calls) const;
  // ns, until a thread runs that goes on now.
  std::int64_t going_on() const;

 private:
  // The least that something usually takes, ns.
  class Usual {
   public:
    void add(double ns);
    // Without what takes longer than it may: that is the program's own time.
    double of(double ns) const { return ns_ != 0 && ns > most * ns_ ? ns_ : ns; }
    double ns() const { return ns_; }

   private:
    static constexpr double most = 2;
    double ns_ = 0;  // 0: not known
  };
  Usual first_, next_;
};

}  // namespace luaspy
