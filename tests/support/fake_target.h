#pragma once
// A target that exists in a test only: threads that do what the test says, at times that it says.

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/event_tables.h"
#include "sampling/cpu_sampler_host.h"
#include "sampling/cpu_tick.h"
#include "sampling/sampled_process.h"

namespace luaspy::fake {

using Clock = system::Clock;

inline const Clock::time_point start{std::chrono::hours(1)};
constexpr std::int64_t ns_a_ms = 1'000'000;

inline Clock::time_point at_ms(double time) {
  return start + std::chrono::nanoseconds(static_cast<std::int64_t>(time * 1e6));
}

// A thread number that no thread of the machine has (/proc/sys/kernel/pid_max is 2^22 at most).
constexpr pid_t no_thread = std::numeric_limits<pid_t>::max() / 2;

class FakeThread : public Thread {
 public:
  explicit FakeThread(pid_t number = 1, std::int64_t began = 1) : Thread(no_thread + number, "lua", began) {}

  ThreadState state() const override {
    ThreadState now;
    now.kind = where.letter == 'R' ? ThreadState::Kind::running : ThreadState::Kind::sleeping;
    return now;
  }
  char state_letter() const override { return where.letter; }
  int cpu() const override { return where.cpu; }
  Schedule schedule() const override { return has; }
  Place place() const override { return where; }
  std::optional<std::int64_t> counted_at() const override { return counted; }

  // It had a CPU for so long since the last call, in so many turns, and could have had it for so long.
  void run(std::int64_t ns, std::uint64_t turns = 1, std::int64_t waited_ns = 0) {
    has.on_cpu += ns, has.runs += turns, has.waited_for_cpu += waited_ns;
  }

  Place where{'R', 0};
  Schedule has{0, 0, 1};
  std::optional<std::int64_t> counted;
};

class NoMemory : public Memory {
 public:
  bool read(Address, std::span<std::byte>) const override { return false; }
};

class FakeProcess : public SampledProcess {
 public:
  explicit FakeProcess(EventTables& tables, pid_t pid = no_thread) : tables_(tables), pid_(pid) {}

  pid_t pid() const override { return pid_; }
  std::uint64_t program() const override { return program_; }
  const std::vector<std::shared_ptr<Thread>>& threads() override { return threads_; }
  void forget_threads() override { ++forgotten; }
  ThreadKey key_of(const Thread& thread) const override { return {program_, pid_, thread.tid(), thread.started()}; }
  ThreadId id_of(const Thread& thread) override {
    return tables_.threads.intern({thread.tid(), thread.name(), pid_, "lua", program_, thread.started()});
  }
  const Memory& memory() const override { return memory_; }
  std::unique_ptr<Stop> ask_to_stop(Tracer&, pid_t) override { return nullptr; }
  bool begin_look() override { return true; }
  Loss read_stopped(Stop&, Thread&, const StackReader::Prediction&, Sampler::Look&) override { return Loss::none; }
  Loss read_without_stop(const SwitchLog&, const SwitchLog::Switch&, const StackReader::Prediction&,
                         Sampler::Look&) override {
    return Loss::none;
  }
  Loss read_asleep(Thread&, const ThreadState&, const StackReader::Prediction&, Sampler::Look&) override {
    return Loss::none;
  }
  void end_look() override {}
  Sample finish(Sampler::Look&, StackReader::Prediction&) override { return next_sample; }

  // It executes another program.
  void exec() { ++program_, threads_.clear(); }

  Sample next_sample;
  int forgotten = 0;  // how often threads were

 private:
  EventTables& tables_;
  const pid_t pid_;
  std::uint64_t program_ = 1;
  NoMemory memory_;
  std::vector<std::shared_ptr<Thread>> threads_;
};

// A machine of some CPUs, on which every CPU has a CPU sampler that can be had.
class FakeHost : public CpuSamplerHost {
 public:
  explicit FakeHost(int cpus, double rate = 100, bool idle = false)
      : cpus_(cpus), options_{TickGrid(rate, start, 1), idle} {}

  const CpuSamplerOptions& options() const override { return options_; }
  void visit_threads(const std::function<void(const std::shared_ptr<TrackedThread>&)>& visit) const override {
    for (const auto& thread : threads) visit(thread);
  }
  bool begin_tick(std::int64_t, Clock::time_point) override { return true; }
  std::int64_t skipped() const override { return skipped_ticks; }
  void add_stop(int, std::int64_t) override {}
  void add_work(int, std::int64_t) override {}
  void count_unreported() override { ++unheard; }
  void count_from_elsewhere() override { ++from_elsewhere; }
  bool need(int cpu) override { return cpu >= 0 && cpu < cpus_; }
  bool need_other(int) override { return cpus_ > 1; }
  bool is_preceded_by(const TrackedThread& thread) const override { return &thread == preceding; }
  bool assign_elsewhere(TrackedThread& thread, int cpu) override {
    if (cpus_ < 2) return false;
    thread.cpu = (cpu + 1) % cpus_;
    return true;
  }
  bool retire(CpuSampler&) override { return false; }
  void leave_alone(int) override {}
  int priority() const override { return 0; }
  bool stands_above() const override { return false; }

  std::vector<std::shared_ptr<TrackedThread>> threads;
  const TrackedThread* preceding = nullptr;
  std::int64_t skipped_ticks = 0;
  int unheard = 0, from_elsewhere = 0;

 private:
  int cpus_;
  CpuSamplerOptions options_;
};

// Notes which looks were asked for.
class FakeLooks : public CpuTick::Looks {
 public:
  struct Look {
    const TrackedThread* thread;
    std::int64_t tick;
    bool remote;
    bool operator==(const Look&) const = default;
  };
  void stop(const std::shared_ptr<TrackedThread>& thread, const Thread::Schedule&, const TickMoment& moment,
            bool remote) override {
    stops.push_back({thread.get(), moment.number, remote});
  }
  void read_without_stop(const std::shared_ptr<TrackedThread>&, const SwitchLog::Switch&, const TickMoment&) override {}
  void read_asleep(const std::shared_ptr<TrackedThread>& thread, const Thread::Schedule& now,
                   const TickMoment& moment) override {
    thread->ticks.account(moment, std::chrono::milliseconds(10), *thread->thread, &now, true, thread->unseen);
    asleep.push_back({thread.get(), moment.number, false});
  }
  bool adopt_unreported(TrackedThread&, const TickMoment&) override { return went_unheard; }
  std::optional<std::int64_t> counted_at() override { return own_counted; }

  std::vector<Look> stops, asleep;
  bool went_unheard = false;
  std::optional<std::int64_t> own_counted;
};

}  // namespace luaspy::fake
