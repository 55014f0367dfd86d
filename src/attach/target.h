#pragma once
// A live target: the one place that stops its threads. A thread is traced only while a Stop is held; between stops
// nobody traces the target, its signals take their usual way, and a luaspy that is killed leaves nothing behind.

#include <optional>

#include "attach/live_memory.h"
#include "attach/process.h"

namespace luaspy {

class Target {
 public:
  // `patience`: how long a thread may take to stop. It takes long where it is in an uninterruptible sleep (a parent in
  // vfork, a stuck file system), or where the machine is overloaded. While another one stands still there is none: it would have to wait, too,
  // and may be what the first one waits for (in exec).
  Target(Process process, std::chrono::milliseconds patience)
      : process_(std::move(process)), memory_(process_.pid()), patience_(patience) {}

  Process& process() { return process_; }
  const Process& process() const { return process_; }
  const Memory& memory() const { return memory_; }
  // How the target ended, as a shell tells it, if it is luaspy's child and a stop met its end: the kernel tells it once only.
  std::optional<int> exit_status() const { return exit_status_; }

  // Resumes threads whose stop was pending and has come since. Call it once a tick.
  void let_go_pending();
  bool has_pending() const { return !pending_.empty(); }

  // One thread standing still. Registers and memory of the thread are stable while this lives; the destructor lets the
  // thread run. Not copyable, not movable: keep it in the scope that reads.
  class Stop {
   public:
    enum class Outcome { stopped, ended, refused, pending };

    Stop(Target& target, pid_t tid);
    Stop(const Stop&) = delete;
    Stop& operator=(const Stop&) = delete;
    ~Stop() { resume(); }

    // stopped: registers() are valid. ended: the thread is gone. refused: somebody else traces it, or the right to was lost. pending: it did not stop in time (uninterruptible sleep); it is let go when it does.
    Outcome outcome() const { return outcome_; }
    const Registers& registers() const { return registers_; }

    // Lets the thread run. How long it stood still, from the request to the return of the resuming call.
    std::chrono::nanoseconds resume();

   private:
    Outcome wait(bool block);
    bool begin();
    void follow_exec();

    Target& target_;
    pid_t tid_;
    Outcome outcome_ = Outcome::ended;
    int signal_ = 0;
    Registers registers_;
    system::Clock::time_point requested_;
    std::chrono::nanoseconds stood_still_{};
  };

 private:
  Process process_;
  LiveMemory memory_;
  std::chrono::milliseconds patience_;
  std::optional<int> exit_status_;
  std::vector<pid_t> pending_;  // seized and interrupted, not yet seen to stop; or killed while they stood still, not yet seen to end
  std::vector<pid_t> held_;     // threads that stand still
};

}  // namespace luaspy
