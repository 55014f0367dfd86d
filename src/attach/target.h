#pragma once
// A live target: the only place that stops its threads. A thread is traced only while a Stop
// exists. Between stops the target is not traced, its signals are delivered as usual, and if luaspy
// is killed, it leaves nothing behind.

#include <atomic>
#include <memory>
#include <optional>

#include "attach/live_memory.h"
#include "attach/process.h"
#include "system/calls.h"

namespace luaspy {

class Target;

// What a stop needs to know about a target. Shared, because the Target may be destroyed before its
// thread has stopped.
struct TracedProcess {
  explicit TracedProcess(pid_t its) : pid(its) {}
  const pid_t pid;
  std::atomic<int> exit_status = -1;  // -1: not known
};

// A luaspy thread that stops threads. For the kernel the tracer is a thread, and only that thread
// can release what it has stopped. So each thread that stops others has one Tracer, and only that
// thread uses it, except for waits_since(). When the thread ends, the kernel releases everything
// that it still traces.
class Tracer {
 public:
  // `patience`: how long a thread may take to stop. It takes long in an uninterruptible sleep (a
  // parent in vfork, a stuck file system) or on an overloaded machine. While another thread stands
  // still, there is no patience: that thread would have to wait too, and may itself be what this
  // one waits for (in exec). The limit is checked only when a signal interrupts the wait, so
  // somebody has to send one from time to time.
  explicit Tracer(std::chrono::milliseconds patience) : patience_(patience) {}

  // To be called when a wait for any thread reports the end of one that was killed while stopped.
  void forget(pid_t tid);
  // To be called when a wait reports that this thread traces nothing.
  void forget_all() { pending_.clear(); }
  // Resumes threads whose stop was pending and that have stopped by now.
  void let_go_pending();
  bool has_pending() const { return !pending_.empty(); }
  bool has_pending(pid_t tid) const;
  bool has_pending_of(pid_t process) const;
  // Since when this thread has been waiting for another one to stop, ns of system::Clock; 0: it is
  // not waiting. May be called by any thread.
  std::int64_t waits_since() const { return waits_since_; }

 private:
  friend class Stop;
  struct Pending {
    std::shared_ptr<TracedProcess> process;
    pid_t tid = 0;
  };
  std::chrono::milliseconds patience_;
  std::vector<Pending> pending_;  // seized and interrupted, but not yet seen to stop; or killed while stopped, but not
                                  // yet seen to end
  std::vector<pid_t> held_;       // threads that are stopped
  std::atomic<std::int64_t> waits_since_ = 0;
};

// One stopped thread. Its registers and stack are stable while this object exists; the destructor
// resumes it. Neither copyable nor movable: keep it in the scope that reads.
class Stop {
 public:
  enum class Outcome { stopped, ended, refused, pending };

  Stop(Tracer& tracer, Target& target, pid_t tid);
  Stop(Tracer& tracer, std::shared_ptr<TracedProcess> process, pid_t tid);
  Stop(Target& target, pid_t tid);  // by target.tracer()
  // Only requests the stop: outcome() is `pending` until handle(), or says why the request failed.
  struct Later {};
  Stop(Tracer& tracer, Target& target, pid_t tid, Later);
  // Only traces the thread: it runs until a signal stops it, and outcome() is `pending` until
  // arrive(). `signal` is luaspy's own, and is not delivered. A thread that stays traced when this
  // object ends is released when the luaspy thread ends that has begun to trace it.
  struct AtSignal {
    int signal;
  };
  Stop(Tracer& tracer, Target& target, pid_t tid, AtSignal at);
  // AtSignal: where the breakpoint is that sends the signal. If the processor does not say which breakpoint
  // it was, because a hypervisor has lost that, the kernel sends the thread SIGTRAP instead, which would
  // end the program (arch/x86/kernel/traps.c, exc_debug_user). Seen once in some 500,000 traps in a
  // Firecracker on Intel. At this address it counts as luaspy's own signal: on all processors, a breakpoint
  // is reported at its instruction.
  void expect_trap(Address at) { own_trap_ = at; }
  // Takes what system::wait_for() or system::wait_for_any() has reported about the thread.
  void handle(const system::WaitStatus& status);
  // True if the thread is stopped although no wait has reported it. Then the report went to
  // somebody else (another thread's waitpid(2) can take it), and nobody would resume the thread: it
  // is taken over as stopped.
  bool adopt_unreported();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  ~Stop() { resume(); }

  // stopped: registers() are valid. ended: the thread is gone. refused: another process traces it,
  // or luaspy has lost the right to. pending: it did not stop in time (uninterruptible sleep); it
  // is released when it does.
  Outcome outcome() const { return outcome_; }
  const Registers& registers() const { return registers_; }
  // AtSignal: whether it was luaspy's own signal that has stopped it.
  bool by_own_signal() const { return by_own_signal_; }
  // Whether it stands still with all of its process, until SIGCONT comes.
  bool stays_stopped() const { return stays_stopped_; }
  // Whether it stopped at the return from a system call.
  bool at_system_call() const { return at_system_call_; }

  system::Clock::time_point requested() const { return requested_; }
  pid_t tid() const { return tid_; }

  // AtSignal: resumes the thread, which stays traced: outcome() is `pending` again until handle(). False
  // if that is not possible: it was killed, or has stopped for a signal of its own, which resume()
  // delivers.
  bool go_on();
  // Resumes the thread. Returns how long it stood still, from the request to the return of the
  // resuming call.
  std::chrono::nanoseconds resume();

 private:
  Outcome wait(bool block);
  Outcome outcome_of(const system::WaitStatus& status);
  bool is_own_trap() const;
  bool seize();
  bool begin();
  void conclude(pid_t asked);
  void follow_exec();

  Tracer& tracer_;
  const std::shared_ptr<TracedProcess> process_;
  pid_t tid_;
  Outcome outcome_ = Outcome::ended;
  int signal_ = 0;      // to deliver
  int own_signal_ = 0;  // not to deliver
  Address own_trap_ = 0;
  bool by_own_signal_ = false;
  bool stays_stopped_ = false;  // with all of its process
  bool at_system_call_ = false;
  Registers registers_;
  system::Clock::time_point requested_;
  std::chrono::nanoseconds stood_still_{};
};

class Target {
 public:
  using Stop = luaspy::Stop;

  // `patience`: that of tracer(); see Tracer.
  Target(Process process, std::chrono::milliseconds patience)
      : process_(std::move(process)),
        memory_(process_.pid()),
        tracer_(patience),
        traced_(std::make_shared<TracedProcess>(process_.pid())) {}

  Process& process() { return process_; }
  const Process& process() const { return process_; }
  const Memory& memory() const { return memory_; }
  // For luaspy's main thread.
  Tracer& tracer() { return tracer_; }
  // The target's exit status, as a shell reports it, if the target is luaspy's child and a stop
  // received its end: the kernel reports an end only once.
  std::optional<int> exit_status() const {
    const int status = traced_->exit_status;
    return status < 0 ? std::nullopt : std::optional(status);
  }

 private:
  friend class luaspy::Stop;
  Process process_;
  LiveMemory memory_;
  Tracer tracer_;
  std::shared_ptr<TracedProcess> traced_;
};

}  // namespace luaspy
