#pragma once
// A live target: the one place that stops its threads. A thread is traced only while a Stop is
// held; between stops nobody traces the target, its signals take their usual way, and a luaspy that
// is killed leaves nothing behind.

#include <atomic>
#include <memory>
#include <optional>

#include "attach/live_memory.h"
#include "attach/process.h"
#include "system/calls.h"

namespace luaspy {

class Target;

// What a stop needs of a target, which may be gone before its thread has stopped: it is kept until
// then.
struct TracedProcess {
  explicit TracedProcess(pid_t its) : pid(its) {}
  const pid_t pid;
  std::atomic<int> exit_status = -1;  // -1: not known
};

// A thread of luaspy's that stops threads. To the kernel a thread is the tracer, and only it can
// let go what it has stopped: one object for each thread that stops, used by that thread alone but
// for waits_since(). When that thread ends, the kernel lets go whatever it still traces.
class Tracer {
 public:
  // `patience`: how long a thread may take to stop. It takes long where it is in an uninterruptible
  // sleep (a parent in vfork, a stuck file system), or where the machine is overloaded. While
  // another one stands still there is none: it would have to wait, too, and may be what the first
  // one waits for (in exec). The wait is looked at again when a signal comes to the thread, and
  // only then: somebody has to send one now and then.
  explicit Tracer(std::chrono::milliseconds patience) : patience_(patience) {}

  // A wait for any thread has heard the end of one that was killed where it stood.
  void forget(pid_t tid);
  // It has heard that the thread traces nothing.
  void forget_all() { pending_.clear(); }
  // Resumes threads whose stop was pending and has come since.
  void let_go_pending();
  bool has_pending() const { return !pending_.empty(); }
  bool has_pending(pid_t tid) const;
  bool has_pending_of(pid_t process) const;
  // Since when the thread waits for another one to stop, ns of system::Clock; 0: it does not. Any
  // thread may ask.
  std::int64_t waits_since() const { return waits_since_; }

 private:
  friend class Stop;
  struct Pending {
    std::shared_ptr<TracedProcess> process;
    pid_t tid = 0;
  };
  std::chrono::milliseconds patience_;
  std::vector<Pending> pending_;  // seized and interrupted, not yet seen to stop; or killed while they stood still, not
                                  // yet seen to end
  std::vector<pid_t> held_;       // threads that stand still
  std::atomic<std::int64_t> waits_since_ = 0;
};

// One thread standing still. Registers and memory of the thread are stable while this lives; the
// destructor lets the thread run. Not copyable, not movable: keep it in the scope that reads.
class Stop {
 public:
  enum class Outcome { stopped, ended, refused, pending };

  Stop(Tracer& tracer, Target& target, pid_t tid);
  Stop(Tracer& tracer, std::shared_ptr<TracedProcess> process, pid_t tid);
  Stop(Target& target, pid_t tid);  // by target.tracer()
  // Only asks the thread to stop: outcome() is `pending` until arrive(), or says why it cannot be
  // asked.
  struct Later {};
  Stop(Tracer& tracer, Target& target, pid_t tid, Later);
  // It did what system::wait_for_any() says.
  void arrive(const system::WaitStatus& status);
  // Does it stand still, though no wait has told? Then somebody else has heard of it (a waitpid(2)
  // of another thread's takes it), and nobody would let it run: it is taken as it stands.
  bool take_unheard();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  ~Stop() { resume(); }

  // stopped: registers() are valid. ended: the thread is gone. refused: somebody else traces it, or
  // the right to was lost. pending: it did not stop in time (uninterruptible sleep); it is let go
  // when it does.
  Outcome outcome() const { return outcome_; }
  const Registers& registers() const { return registers_; }
  // Did it stop at the return from a system call?
  bool at_system_call() const { return at_system_call_; }

  system::Clock::time_point requested() const { return requested_; }
  pid_t tid() const { return tid_; }

  // Lets the thread run. How long it stood still, from the request to the return of the resuming
  // call.
  std::chrono::nanoseconds resume();

 private:
  Outcome wait(bool block);
  Outcome take(const system::WaitStatus& status);
  bool begin();
  void settle(pid_t asked);
  void follow_exec();

  Tracer& tracer_;
  const std::shared_ptr<TracedProcess> process_;
  pid_t tid_;
  Outcome outcome_ = Outcome::ended;
  int signal_ = 0;
  bool at_system_call_ = false;
  Registers registers_;
  system::Clock::time_point requested_;
  std::chrono::nanoseconds stood_still_{};
};

class Target {
 public:
  using Stop = luaspy::Stop;

  // `patience`: see Tracer, of tracer().
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
  // How the target ended, as a shell tells it, if it is luaspy's child and a stop met its end: the
  // kernel tells it once only.
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
