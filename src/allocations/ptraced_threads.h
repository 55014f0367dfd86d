#pragma once
// The threads of real programs, stopped by ptrace and trapped by perf events. For one thread of luaspy.

#include <memory>

#include "allocations/traced_threads.h"

namespace luaspy {

class PtracedThread : public TracedThread {
 public:
  PtracedThread(Tracer& tracer, Target& target, pid_t tid, int signal)
      : stop_(tracer, target, tid, Stop::AtSignal{signal}) {}
  Stop::Outcome outcome() const override { return stop_.outcome(); }
  const Registers& registers() const override { return stop_.registers(); }
  bool by_own_signal() const override { return stop_.by_own_signal(); }
  bool stays_stopped() const override { return stop_.stays_stopped(); }
  void expect_trap(Address at) override { stop_.expect_trap(at); }
  void handle(const system::WaitStatus& status) override { stop_.handle(status); }
  bool go_on() override { return stop_.go_on(); }
  void resume() override { stop_.resume(); }
  const Stop& stop() const { return stop_; }

 private:
  Stop stop_;
};

class PtracedThreads : public TracedThreads {
 public:
  system::Clock::time_point now() const override { return system::Clock::now(); }
  void sleep_until(system::Clock::time_point until) override { (void)system::sleep_until(until); }
  Result<std::unique_ptr<CallTrap>> open_trap(pid_t tid, Address function) override {
    return CallTrap::open(tid, function);
  }
  std::unique_ptr<TracedThread> trace(const Allocator& allocator, int signal) override;
  bool interrupt(pid_t tid) override { return !system::interrupt(tid); }
  void detach(pid_t tid, int signal) override { (void)system::detach(tid, signal); }
  system::WaitStatus wait(pid_t& tid, system::Clock::time_point until) override;

  Tracer& tracer() { return tracer_; }
  const Tracer& tracer() const { return tracer_; }
  // Ends what waits, until it is cleared.
  system::Alarm& alarm() { return alarm_; }

 private:
  system::Alarm alarm_;
  Tracer tracer_{std::chrono::milliseconds(50)};
};

}  // namespace luaspy
