#pragma once
// A program that exists in a test only: one thread that calls its Lua's allocation function at times that the test
// says, and what bursts do to it (allocations/traced_threads.h).

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "allocations/bursts.h"
#include "luastate/luas.h"
#include "support/fake_target.h"

namespace luaspy::fake {

using namespace std::chrono_literals;

// Zeros, but for some words.
class Words : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    std::memset(into.data(), 0, into.size());
    for (const auto& [at, word] : words_) {
      if (at >= address && at + sizeof word <= address + into.size())
        std::memcpy(into.data() + (at - address), &word, sizeof word);
    }
    return true;
  }
  std::uint64_t& operator[](Address address) { return words_[address]; }

 private:
  std::map<Address, std::uint64_t> words_;
};

struct AllocatingProgram {
  struct Step {
    Clock::duration after{};  // of the program's own time
    AllocationCall call;
  };

  static constexpr Address G = 0x10000, function = 0x5000;
  static constexpr int signal = 23;

  AllocatingProgram() {
    memory[G] = function;  // lstate.h, global_State: frealloc is first from 5.2 on
    memory[heap_counter()] = 1 << 20;
  }
  Address heap_counter() const { return lua.heap_counter(G).start; }
  std::uint64_t& heap() { return memory[heap_counter()]; }

  // Its time passes until then, unless it comes to stand still.
  void run_until(Clock::time_point until) {
    while (!stands && now < until && !has_ended) {
      const Clock::duration left = steps(position).after - done;
      if (now + left > until) {
        done += until - now;
        break;
      }
      now += left;
      done = {};
      call(steps(position++).call);
    }
    if (now < until) now = until;
  }

  const Lua& lua = *layouts_for("5.4.6").front();
  Words memory;
  std::shared_ptr<FakeThread> thread = std::make_shared<FakeThread>();
  std::function<Step(std::size_t)> steps;
  std::function<void()> at_call;  // before the call
  std::size_t position = 0;       // the next step
  Clock::duration done{};         // of the time before it
  Clock::time_point now = start;
  Clock::duration a_trap = 10us, a_stop = 20us;
  bool has_ended = false, stands = false, traced = false, by_trap = false;
  int own_signal = 0;  // of the program, when it stands
  bool reported = true;

  struct Trap {
    bool armed = false;
    std::int64_t number = 0;
    std::vector<CallTrap::Call> calls;
  } trap;

  void stop(bool by_its_trap, int signal_of_its_own = 0) {
    stands = true, reported = false, by_trap = by_its_trap, own_signal = signal_of_its_own;
  }

 private:
  void call(const AllocationCall& made) {
    if (at_call) at_call();
    if (made.growth() != 0) heap() += made.growth();
    if (!trap.armed || !traced) return;
    now += a_trap;
    trap.calls.push_back({now, {0, made.pointer, made.old_size, made.new_size}});
    if (static_cast<std::int64_t>(trap.calls.size()) == trap.number) stop(true);
  }
};

class FakeTrap : public CallTrap {
 public:
  explicit FakeTrap(AllocatingProgram& program) : program_(program) {}
  ~FakeTrap() override { program_.trap = {}; }
  int signal() const override { return AllocatingProgram::signal; }
  void set_number(std::int64_t number) override { program_.trap.number = number; }
  bool arm() override {
    if (program_.has_ended) return false;
    program_.trap.armed = true;
    program_.trap.calls.clear();
    return true;
  }
  void disarm() override { program_.trap.armed = false; }
  bool arm_return(Address) override { return false; }
  void disarm_return() override {}
  const std::vector<Call>& calls() override { return program_.trap.calls; }
  bool has_calls() const override { return !program_.trap.calls.empty(); }

 private:
  AllocatingProgram& program_;
};

class FakeTraced : public TracedThread {
 public:
  explicit FakeTraced(AllocatingProgram& program) : program_(program) { program.traced = true; }
  ~FakeTraced() override { resume(); }
  Stop::Outcome outcome() const override { return outcome_; }
  const Registers& registers() const override { return registers_; }
  bool by_own_signal() const override { return program_.by_trap; }
  bool stays_stopped() const override { return false; }
  void expect_trap(Address) override {}
  void handle(const system::WaitStatus& status) override {
    outcome_ = status.kind == system::WaitStatus::Kind::stopped ? Stop::Outcome::stopped : Stop::Outcome::ended;
  }
  bool go_on() override {
    if (outcome_ != Stop::Outcome::stopped || program_.own_signal != 0) return false;
    outcome_ = Stop::Outcome::pending;
    program_.stands = false;
    return true;
  }
  void resume() override {
    program_.traced = program_.stands = false;
    outcome_ = Stop::Outcome::ended;
  }

 private:
  AllocatingProgram& program_;
  Stop::Outcome outcome_ = Stop::Outcome::pending;
  Registers registers_;
};

class FakeTracedThreads : public TracedThreads {
 public:
  explicit FakeTracedThreads(AllocatingProgram& program) : program_(program) {}
  Clock::time_point now() const override { return program_.now; }
  void sleep_until(Clock::time_point until) override { program_.run_until(until); }
  Result<std::unique_ptr<CallTrap>> open_trap(pid_t, Address) override {
    return std::unique_ptr<CallTrap>(std::make_unique<FakeTrap>(program_));
  }
  std::unique_ptr<TracedThread> trace(const Allocator&, int) override { return std::make_unique<FakeTraced>(program_); }
  bool interrupt(pid_t) override {
    if (program_.has_ended) return false;
    if (program_.stands) return true;
    program_.run_until(program_.now + program_.a_stop);
    if (!program_.stands) program_.stop(false);
    return true;
  }
  void detach(pid_t tid, int signal) override { detached.emplace_back(tid, signal); }
  system::WaitStatus wait(pid_t& tid, Clock::time_point until) override {
    if (stranger != 0) {
      tid = std::exchange(stranger, 0);
      return {.kind = system::WaitStatus::Kind::stopped, .signal = 10};
    }
    program_.run_until(until);
    tid = program_.thread->tid();
    if (program_.has_ended) return {.kind = system::WaitStatus::Kind::ended};
    if (!program_.stands || std::exchange(program_.reported, true))
      return {.kind = system::WaitStatus::Kind::interrupted};
    return {.kind = system::WaitStatus::Kind::stopped, .signal = program_.own_signal};
  }

  pid_t stranger = 0;  // a thread that nobody traces is reported as stopped
  std::vector<std::pair<pid_t, int>> detached;

 private:
  AllocatingProgram& program_;
};

}  // namespace luaspy::fake
