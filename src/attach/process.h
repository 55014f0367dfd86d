#pragma once
// What /proc reports about a target, and whether luaspy may look at it. Only /proc is read; the
// target is not touched.

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
  // How long it has been on a CPU, and how long it could have run but had none, ns (schedstat,
  // Documentation/scheduler/sched-stats.rst); 0 if the kernel does not report it.
  struct Times {
    std::int64_t on_cpu = 0, waited_for_cpu = 0;
  };
  Times times() const;
  // All three numbers of schedstat, in one read that takes 1 µs.
  struct Schedule {
    std::int64_t on_cpu = 0, waited_for_cpu = 0;  // ns
    std::uint64_t runs = 0;                       // how often it was given a CPU; 0 if the kernel does not report it
  };
  Schedule schedule() const;
  // How often it gave its CPU away by itself, to wait for something; -1: not known. Takes 15 µs.
  std::int64_t voluntary_switches() const;
  // Where it sleeps in the kernel (proc(5), /proc/PID/task/TID/stack), as text; empty if that may not be read: it takes
  // CAP_SYS_ADMIN. Of a thread that runs it is wrong.
  std::string kernel_stack() const;
  std::uint64_t run_count() const { return schedule().runs; }
  // Its state letter and the CPU that it is on, or was on last, in one read that takes 3 µs.
  struct Place {
    char letter = '?';
    int cpu = -1;
  };
  Place place() const;
  // When it was given its CPU, or when its time there was last counted, whichever is later; ns of
  // the scheduler's clock. nullopt if the kernel does not report it (/proc/TID/sched,
  // CONFIG_SCHED_DEBUG). Takes 20 µs.
  std::optional<std::int64_t> counted_at() const;

 private:
  pid_t tid_;
  std::string name_;
  FileDescriptor syscall_, schedstat_, stat_;
  mutable FileDescriptor sched_;  // opened on first use
  pid_t pid_;
};

// The CPU time that a process has used, with that of its threads that have ended; nullopt if it is gone.
struct ProcessCpuTime {
  std::int64_t ns = 0;                      // exact
  std::int64_t user_ns = 0, system_ns = 0;  // the same, each rounded down to clock ticks
  std::int64_t tick_ns = 10'000'000;        // USER_HZ (time(7))
  std::int64_t children_ns = 0;             // of children that have ended and were waited for, theirs included
};
std::optional<ProcessCpuTime> cpu_time_of(pid_t pid);

// Where /proc/PID/exe points; "?" if that cannot be read.
std::string executable_of(pid_t pid);

class Process : public Mapped {
 public:
  // Checks that the process exists, is alive and 64-bit, and that luaspy may look at it. An Error
  // names the one cause and its remedy.
  static Result<Process> open(pid_t pid);

  pid_t pid() const { return pid_; }
  bool alive() const;
  std::string command() const;  // its arguments, separated by spaces; its name in brackets if there are none
  std::string executable() const { return executable_of(pid_); }
  AddressSpace address_space() const override;

  // The threads that exist now. A thread keeps its Thread object from call to call.
  const std::vector<std::shared_ptr<Thread>>& threads();
  // A thread was found to have ended: the next threads() lists them again.
  void forget_threads() { list_again_ = true; }
  // Somebody is told of each thread that begins or ends (births.h), and tells it here: then threads() lists them
  // only now and then, to be sure.
  void add_thread(pid_t tid);
  void remove_thread(pid_t tid);

  // Works in whatever mount namespace the file is.
  FileDescriptor open_mapped(const Mapping& mapping) const override;
  std::optional<FileVersion> file_version(const Mapping& mapping) const override;
  std::optional<Program> program() const override;

 private:
  explicit Process(pid_t pid);

  pid_t pid_;
  FileDescriptor task_;  // the directory of threads
  std::vector<std::shared_ptr<Thread>> threads_;
  std::uint64_t thread_count_ = 0;
  system::Clock::time_point listed_;
  bool list_again_ = false;
  bool told_ = false;  // of births
};

// A live thread of the process: the first one if it is alive, `pid` if none is. /proc/PID/…
// describes the first thread; once that has ended (pthread_exit(3) in main), maps and exe are empty
// there and process_vm_readv(2) finds no memory, while /proc/TID/… of another thread still has all
// of it.
pid_t living_thread(pid_t pid);
// The live processes that `pid`'s threads have started; empty if the kernel does not report them
// (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children_of(pid_t pid);
// Process::open_mapped(), file_version() and command() for a process that luaspy might not be allowed to look at.
FileDescriptor open_mapped(pid_t pid, const Mapping& mapping);
std::optional<FileVersion> version_of(pid_t pid, const Mapping& mapping);
std::string command_of(pid_t pid);

}  // namespace luaspy
