#pragma once
// The calls of one function by one thread, as they happen: a debug register traps them, so no byte
// of the target is changed. Each trapped call takes some 10 µs, so a trap is armed for a number of
// calls only. The last of them sends the thread a signal, at which a tracer finds it stopped at the
// function's first instruction (Stop::AtSignal).
//
// perf_event_open(2), PERF_TYPE_BREAKPOINT. Two events of one group share the trap: one notes each
// call's arguments in a ring buffer, the other one counts and sends the signal. The events belong to
// luaspy: they are gone when it ends, however it ends. The signal is one that a process ignores
// unless it handles it, so it harms nothing if no tracer is there any more.
//
// A third event, if there is a debug register for it, stops the thread once more where the call
// returns.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "system/calls.h"

namespace luaspy {

class CallTrap {
 public:
  // The calls by thread `tid` of the function at `address`. An Error says why there is no trap, and
  // what helps.
  static Result<std::unique_ptr<CallTrap>> open(pid_t tid, Address address);
  CallTrap() = default;
  CallTrap(const CallTrap&) = delete;
  CallTrap& operator=(const CallTrap&) = delete;
  virtual ~CallTrap() = default;

  virtual int signal() const = 0;
  static constexpr std::int64_t most_calls = 2000;  // that set_number() accepts

  // Which call sends the signal, counted from 1, when it is armed next. Not while it is armed.
  virtual void set_number(std::int64_t number) = 0;
  // From now on calls are trapped. False: the thread is gone.
  virtual bool arm() = 0;
  virtual void disarm() = 0;

  // The thread stands still: from now on, the instruction at `address` sends it the signal, until
  // disarm_return(). False: there is no trap for that.
  virtual bool arm_return(Address address) = 0;
  virtual void disarm_return() = 0;

  struct Call {
    system::Clock::time_point at;
    std::array<std::uint64_t, 4> arguments{};
  };
  // Those trapped since arm(), at most most_calls.
  virtual const std::vector<Call>& calls() = 0;
  // Whether there are any.
  virtual bool has_calls() const = 0;
};

}  // namespace luaspy
