#pragma once
// What bursts do to threads, and the time that passes meanwhile: by ptrace and perf events (ptraced_threads.h). Tests
// have threads and a clock of their own.

#include <sys/types.h>

#include <memory>

#include "attach/call_trap.h"
#include "attach/target.h"
#include "system/calls.h"

namespace luaspy {

struct Allocator;

// A thread that is traced: it runs until a signal stops it, and stands still until it goes on. What these do is what
// those of Stop do. The destructor lets it run on, traced by nobody.
class TracedThread {
 public:
  virtual ~TracedThread() = default;
  virtual Stop::Outcome outcome() const = 0;
  virtual const Registers& registers() const = 0;
  virtual bool by_own_signal() const = 0;
  virtual bool stays_stopped() const = 0;
  virtual void expect_trap(Address at) = 0;
  virtual void handle(const system::WaitStatus& status) = 0;
  virtual bool go_on() = 0;
  virtual void resume() = 0;
};

class TracedThreads {
 public:
  virtual ~TracedThreads() = default;

  virtual system::Clock::time_point now() const = 0;
  virtual void sleep_until(system::Clock::time_point until) = 0;

  virtual Result<std::unique_ptr<CallTrap>> open_trap(pid_t tid, Address function) = 0;
  // The allocator's thread is traced from now on; `signal`: luaspy's own.
  virtual std::unique_ptr<TracedThread> trace(const Allocator& allocator, int signal) = 0;
  // It is about to stop. False: it has ended.
  virtual bool interrupt(pid_t tid) = 0;
  // One that nobody knows has stopped: it runs on, traced by nobody.
  virtual void detach(pid_t tid, int signal) = 0;
  // What the first one has come to; `interrupted`: nothing has happened until then.
  virtual system::WaitStatus wait(pid_t& tid, system::Clock::time_point until) = 0;
};

}  // namespace luaspy
