#pragma once
// What /proc tells about a target, and whether luaspy may look at it. Nothing here touches the
// target.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped.h"
#include "base/result.h"
#include "system/calls.h"

namespace luaspy {

// What a thread is doing, from /proc/PID/task/TID/syscall (proc(5)).
struct ThreadState {
  enum class Kind { running, sleeping, ended } kind = Kind::ended;
  long system_call = -1;  // sleeping: its number, -1 if it waits outside a system call (a page fault)
  std::array<std::uint64_t, 6> arguments{};
  Address sp = 0, pc = 0;  // sleeping: user-space registers
  bool operator==(const ThreadState&) const = default;
};

// One thread of the target. Its /proc files stay open: opening them costs more than reading.
class Thread {
 public:
  Thread(pid_t pid, pid_t tid);

  pid_t tid() const { return tid_; }
  const std::string& name() const { return name_; }

  ThreadState state() const;
  // One letter, as ps(1) shows it: R, S, D, T, t, Z, X; '?' if the thread is gone.
  char state_letter() const;
  // The CPU that it ran on last; -1 if it is gone.
  int cpu() const;
  // How long it has been on a CPU, and how long it could have run and had none, ns (schedstat,
  // Documentation/scheduler/sched-stats.rst); 0 if the kernel does not tell.
  struct Times {
    std::int64_t on_cpu = 0, waited_for_cpu = 0;
  };
  Times times() const;
  // All three of schedstat's numbers, in one read of 1 µs.
  struct Schedule {
    std::int64_t on_cpu = 0, waited_for_cpu = 0;  // ns
    std::uint64_t runs = 0;                       // times it was given a CPU; 0 if the kernel does not tell
  };
  Schedule schedule() const;
  std::uint64_t run_count() const { return schedule().runs; }
  // Its letter and the CPU that it is on, or was on last, in one read: 3 µs.
  struct Place {
    char letter = '?';
    int cpu = -1;
  };
  Place place() const;
  // Its CPU time, counted in clock ticks (times(2)); nullopt if it is gone.
  struct CpuTime {
    std::int64_t user = 0, system = 0;
  };
  std::optional<CpuTime> cpu_time() const;
  // When it was given the CPU, or had its time on it counted last, ns of the scheduler's clock:
  // what executed until now has just been counted. nullopt if the kernel does not tell
  // (/proc/TID/sched, CONFIG_SCHED_DEBUG). 20 µs.
  std::optional<std::int64_t> counted_at() const;

 private:
  pid_t tid_;
  std::string name_;
  FileDescriptor syscall_, schedstat_, stat_;
  mutable FileDescriptor sched_;  // opened when it is asked for
  pid_t pid_;
};

// Where /proc/PID/exe points; "?" if that cannot be read.
std::string executable_of(pid_t pid);

class Process : public Mapped {
 public:
  // Checks that the process exists, is alive, 64-bit and ours to look at. An Error names the one
  // cause and what mends it.
  static Result<Process> open(pid_t pid);

  pid_t pid() const { return pid_; }
  bool alive() const;
  std::string command() const;  // its arguments, separated by spaces; the name in brackets if it has none
  std::string executable() const { return executable_of(pid_); }
  AddressSpace address_space() const override;

  // Tells which threads there are now. The same Thread objects stay for the same threads.
  const std::vector<std::shared_ptr<Thread>>& threads();
  // A thread was found to have ended: the next threads() looks anew.
  void forget_threads() { list_again_ = true; }

  // Whatever mount namespace the file lives in.
  FileDescriptor open_mapped(const Mapping& mapping) const override;

 private:
  explicit Process(pid_t pid);

  pid_t pid_;
  FileDescriptor task_;  // the directory of threads
  std::vector<std::shared_ptr<Thread>> threads_;
  std::uint64_t thread_count_ = 0;
  system::Clock::time_point listed_;
  bool list_again_ = false;
};

// A thread of the process that lives: the first one if it does. /proc/PID/… is of the first thread;
// once that has ended (pthread_exit(3) in main) maps and exe are empty there, and
// process_vm_readv(2) finds no memory, while /proc/TID/… of another thread has all of it. `pid` if
// none lives.
pid_t living_thread(pid_t pid);
// The processes that `pid`'s threads have started and that live; empty if the kernel does not tell
// (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children_of(pid_t pid);
// Process::open_mapped() and command() of a process that need not be ours to look at.
FileDescriptor open_mapped(pid_t pid, const Mapping& mapping);
std::string command_of(pid_t pid);

}  // namespace luaspy
