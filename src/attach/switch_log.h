#pragma once
// What the kernel notes of a thread whenever it is given a CPU, or loses it: when, where, why, and
// the registers that it goes on with. Who has taken a thread's CPU away finds it standing still,
// and need not stop it: it has no CPU to run on until the taker sleeps, and if another one takes it
// up meanwhile, the log says so.
//
// perf_event_open(2): a software event of each switch of one thread, in a ring that the kernel
// overwrites. Allowed are root, CAP_PERFMON, and everybody where
// /proc/sys/kernel/perf_event_paranoid is below 2.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "system/calls.h"

namespace luaspy {

class SwitchLog {
 public:
  // Of a thread, by its number, from now on. nullptr: the kernel does not allow it, or the thread
  // is gone.
  static std::unique_ptr<SwitchLog> open(pid_t tid);
  SwitchLog(const SwitchLog&) = delete;
  SwitchLog& operator=(const SwitchLog&) = delete;
  ~SwitchLog();

  struct Switch {
    enum class Kind : std::uint8_t {
      none,      // there was none yet
      given,     // it has a CPU
      taken,     // its CPU was taken away: it could have run on
      given_up,  // it sleeps, stands still or has ended; or has been woken, and has no CPU yet
    } kind = Kind::none;
    int cpu = -1;
    system::Clock::time_point at;
    std::uint64_t place = 0;  // in the ring
  };
  // The last one. Any thread may ask.
  Switch last() const;
  bool is_last(const Switch& known) const { return head() == known.place; }
  // What the thread goes on with in user space, after `lost`, the last one; nullopt if the kernel
  // has not noted it (there were very many). `at_system_call`: it goes on at the return from a
  // system call.
  std::optional<Registers> registers(const Switch& lost, bool& at_system_call) const;
  // How many bytes were noted so far: what the log costs.
  std::uint64_t noted() const { return -head(); }
  // So many for each time that a thread was given a CPU and lost it: two records of a switch
  // (header, time, CPU), and one of its 17 registers (the same, and which registers they are).
  static constexpr std::uint64_t bytes_per_switch = 2 * 24 + 24 + 8 + 17 * 8;

 private:
  SwitchLog() = default;
  std::uint64_t head() const;
  std::uint64_t word(std::uint64_t place) const;

  FileDescriptor event_;
  const std::byte* ring_ = nullptr;  // a page that tells where the newest record is, then the records
  std::size_t page_ = 0;             // bytes
};

}  // namespace luaspy
