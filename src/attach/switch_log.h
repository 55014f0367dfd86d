#pragma once
// What the kernel logs whenever a thread gets or loses a CPU: when, where, why, and the registers
// that it will continue with. If luaspy has taken the thread's CPU away, the thread stands still
// and need not be stopped: it has no CPU to run on until luaspy sleeps. If another CPU picks it up
// in between, the log says so.
//
// perf_event_open(2): a software event for each switch of one thread, in a ring buffer that the
// kernel overwrites. It is available to root, with CAP_PERFMON, and to everybody if
// /proc/sys/kernel/perf_event_paranoid is below 2.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "attach/record_ring.h"
#include "base/registers.h"
#include "system/calls.h"

namespace luaspy {

class SwitchLog {
 public:
  // Starts logging a thread. nullptr: the kernel does not allow it, or the thread is gone.
  static std::unique_ptr<SwitchLog> open(pid_t tid);

  struct Switch {
    enum class Kind : std::uint8_t {
      none,      // no switch so far
      given,     // it has a CPU
      taken,     // its CPU was taken away, although it could have continued
      given_up,  // it sleeps, is stopped or has ended; or it has been woken, but has no CPU yet
    } kind = Kind::none;
    int cpu = -1;
    system::Clock::time_point at;
    std::uint64_t place = 0;  // position in the ring buffer
  };
  // The last switch. May be called by any thread.
  Switch last() const;
  bool is_last(const Switch& known) const { return ring_.head() == known.place; }
  // The registers with which the thread will continue in user space after `lost`, its last switch;
  // nullopt if the kernel has dropped that record (there were very many). `at_system_call`: it
  // continues at the return from a system call.
  std::optional<Registers> registers(const Switch& lost, bool& at_system_call) const;
  // How often the thread was given a CPU since the log was opened.
  std::uint64_t runs() const { return -ring_.head() / bytes_per_run; }

 private:
  explicit SwitchLog(RecordRing ring) : ring_(std::move(ring)) {}
  // What is logged each time a thread gets a CPU and loses it: two switch records (header, time,
  // CPU) and one with its 17 registers (the same, and which registers they are).
  static constexpr std::uint64_t bytes_per_run = 2 * 24 + 24 + 8 + 17 * 8;

  RecordRing ring_;
};

}  // namespace luaspy
