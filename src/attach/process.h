#pragma once
// A target and its threads, as /proc reports them, and whether luaspy may look at it. Only /proc is
// read; the target is not touched.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attach/by_tid.h"
#include "attach/proc_files.h"
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
// By the text of that file, "" if there is none, and the letter of stat, which is asked for where there is none, and
// outside of system calls ("-1 …").
ThreadState state_of(std::string_view syscall, char letter);

// One thread of the target. Its /proc files stay open: opening them costs more than reading. What it does is virtual
// for tests, which have threads of their own.
class Thread {
 public:
  Thread(pid_t pid, pid_t tid);
  virtual ~Thread() = default;

  pid_t tid() const { return tid_; }
  const std::string& name() const { return name_; }
  // When it began, in clock ticks since the machine's start (proc(5), (22) starttime): with its number, that tells it
  // from a later thread of the same number. 0: it is gone.
  std::int64_t started() const { return started_; }

  virtual ThreadState state() const;
  // One letter, as ps(1) shows it: R, S, D, T, t, Z, X; '?' if the thread is gone.
  virtual char state_letter() const;
  // The CPU that it ran on last; -1 if it is gone.
  virtual int cpu() const;
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
  virtual Schedule schedule() const;
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
  virtual Place place() const;
  // When it was given its CPU, or when its time there was last counted, whichever is later; ns of
  // the scheduler's clock. nullopt if the kernel does not report it (/proc/TID/sched,
  // CONFIG_SCHED_DEBUG). Takes 20 µs.
  virtual std::optional<std::int64_t> counted_at() const;

 protected:
  // One that has no files, and started then.
  Thread(pid_t tid, std::string name, std::int64_t started) : tid_(tid), name_(std::move(name)), started_(started) {}

 private:
  pid_t tid_;
  std::string name_;
  FileDescriptor syscall_, schedstat_, stat_;
  std::int64_t started_;
  mutable FileDescriptor sched_;  // opened on first use
  pid_t pid_ = 0;
};

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
  AddressSpace contents(const AddressSpace& space) const override;

  // The threads that exist now. A thread keeps its Thread object from call to call.
  const std::vector<std::shared_ptr<Thread>>& threads();
  // A thread was found to have ended: the next threads() lists them again.
  void forget_threads() { list_again_ = true; }
  // It has executed another program: the next threads() are others, even if one has the number of one of these.
  void forget_program() {
    threads_.clear();
    list_again_ = true;
  }
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
  void add_if_it_lives(pid_t tid);

  pid_t pid_;
  FileDescriptor task_;  // the directory of threads
  ByTid<Thread> threads_;
  std::uint64_t thread_count_ = 0;
  system::Clock::time_point listed_;
  bool list_again_ = false;
  bool told_ = false;  // of births
};

}  // namespace luaspy
