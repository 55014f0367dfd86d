#pragma once
// What trapped calls cost the program. Between two of them there is the trap, and what the program does
// anyway: nothing, or a long pause. So it is between the instant at which a thread that stood still goes
// on and its first call: there the thread has to get its CPU again. A thread that ran, or slept, when the trap
// was armed has nothing to do before its first call.

#include <cstdint>
#include <optional>
#include <span>

#include "attach/call_trap.h"

namespace luaspy {

class TrapCost {
 public:
  // `resumed`: when the thread went on; nullopt: it did not stand still.
  using Resumed = std::optional<system::Clock::time_point>;
  // Learns from its calls, in the order of time.
  void add(Resumed resumed, std::span<const CallTrap::Call> calls);
  // ns, from then to the last of these calls.
  std::int64_t of(Resumed resumed, std::span<const CallTrap::Call> calls) const;
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
