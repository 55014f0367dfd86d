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
  CallTrap(const CallTrap&) = delete;
  CallTrap& operator=(const CallTrap&) = delete;
  ~CallTrap();

  int signal() const { return signal_; }
  static constexpr std::int64_t most_calls = 2000;  // that set_number() accepts

  // Which call sends the signal, counted from 1, when it is armed next. Not while it is armed.
  void set_number(std::int64_t number);
  // From now on calls are trapped. False: the thread is gone.
  bool arm();
  void disarm();

  // The thread stands still: from now on, the instruction at `address` sends it the signal, until
  // disarm_return(). False: there is no trap for that.
  bool arm_return(Address address);
  void disarm_return();

  struct Call {
    system::Clock::time_point at;
    std::array<std::uint64_t, 4> arguments{};
  };
  // Those trapped since arm(), at most most_calls.
  const std::vector<Call>& calls();
  // Whether there are any.
  bool has_calls() const { return head() != begin_; }

 private:
  CallTrap() = default;
  std::uint64_t head() const;
  std::uint64_t word(std::uint64_t place) const;

  std::byte* map(const FileDescriptor& event, std::size_t pages) const;
  void open_return(pid_t tid, Address address);

  FileDescriptor noting_, counting_, returning_;
  std::byte *ring_ = nullptr, *unused_ring_ = nullptr, *return_ring_ = nullptr;
  std::size_t page_ = 0;     // bytes
  std::uint64_t begin_ = 0;  // of what was noted since arm()
  int signal_ = 0;
  std::vector<Call> calls_;
};

}  // namespace luaspy
