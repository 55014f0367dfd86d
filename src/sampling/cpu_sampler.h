#pragma once
// One luaspy thread on one CPU: what it does at a tick. cpu_samplers.h explains why, and manages all of
// them.

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "attach/kernel_log.h"
#include "attach/own_cpu.h"
#include "attach/urgency.h"
#include "sampling/cpu_samplers.h"
#include "system/calls.h"

namespace luaspy {

// Hands over what it finds through a ring buffer: one thread adds, another one removes, neither
// waits.
class CpuSampler {
 public:
  CpuSampler(CpuSamplers& all, int cpu, int place, Ward& ward) : all_(all), cpu_(cpu), phase_(place % 4), ward_(ward) {}
  ~CpuSampler() {
    if (exists_) pthread_join(thread_, nullptr);
    sem_destroy(&wanted_);
  }

  int cpu() const { return cpu_; }
  bool active() const { return active_; }
  std::int64_t waits_since() const { return tracer_.waits_since(); }

  void deactivate() { active_ = false; }
  void activate() {
    asked_again_ = true;
    if (active_.exchange(true)) return;
    if (!exists_) begin();
    else sem_post(&wanted_);
  }
  void end() {
    ends_ = true;
    ward_.expect(system::Clock::now());  // even if it is parked
    sem_post(&wanted_);
  }
  void interrupt() {
    if (exists_) pthread_kill(thread_, SIGALRM);
  }
  // From now on it has that real-time priority, if it has one.
  void step_to(int priority) {
    if (real_time_) (void)make_real_time(ward_.tid(), priority);
  }
  // It starves: lets it run elsewhere, if luaspy may; and as an ordinary thread.
  void free_from_cpu(const std::vector<int>& usable) {
    if (exists_ && !ended_) (void)move(thread_, others_than(cpu_, usable));
  }
  void lower() {
    if (exists_ && !ended_) make_ordinary(thread_);
  }
  bool has_ended() const { return ended_ || !exists_; }

  // The main thread's end of the ring.
  TickResult* front() {
    return taken_ == put_.load(std::memory_order_acquire) ? nullptr : ring_[taken_ % ring_size].get();
  }
  void pop() { taken_.store(taken_ + 1, std::memory_order_release); }

 private:
  static constexpr std::size_t ring_size = 128;

  void begin();
  static void* main(void* self);
  void run();
  void settle_on_cpu();
  void park();
  bool leave_cpu();
  void tick(std::int64_t number, system::Clock::time_point due);
  void consider(const std::shared_ptr<TrackedThread>& watch, std::int64_t number, system::Clock::time_point due);
  bool consider_by_log(const std::shared_ptr<TrackedThread>& watch, std::int64_t number, system::Clock::time_point due);
  void settle_candidates(std::int64_t number, bool in_time);
  bool executes(const TrackedThread& watch, const Thread::Schedule& now, bool alone);
  void ask(const std::shared_ptr<TrackedThread>& watch, const Thread::Schedule& before, std::int64_t number,
           bool remote);
  void wait_until(system::Clock::time_point due);
  void look_at_sleeping(const std::shared_ptr<TrackedThread>& watch, const Thread::Schedule& now, std::int64_t number);
  void account(TrackedThread& watch, std::int64_t number, const Thread::Schedule* now, bool slept);
  bool is_asked(TrackedThread& watch, std::int64_t number);
  bool traces(Session& session) const;
  bool looks_in_vain(TrackedThread& watch, std::int64_t number) const;
  bool came_at_once(system::Clock::time_point due) const;
  TickResult* open_found(const std::shared_ptr<TrackedThread>& watch, std::int64_t number);
  void put() { put_.store(put_ + 1, std::memory_order_release); }
  void waits(const std::shared_ptr<TrackedThread>& watch, std::int64_t number, const Thread::Schedule* now);

  struct Candidate {
    std::shared_ptr<TrackedThread> watch;
    Thread::Schedule now;
    int cpu;      // where it is
    bool remote;  // the CPU sampler is on another one
    bool executes = false;
  };
  void consider_place(const std::shared_ptr<TrackedThread>& watch, const Thread::Schedule& now, std::int64_t number,
                      system::Clock::time_point due);
  void consider_preceding(const std::shared_ptr<TrackedThread>& watch, const Thread::Schedule& now,
                          const Thread::Place& place, std::int64_t number, system::Clock::time_point due);
  void choose_executing();
  // A thread that executed at a tick and was asked to stop. It stops when it gets its CPU again,
  // which may be in use by another thread until then.
  struct Asked {
    std::shared_ptr<TrackedThread> watch;
    std::unique_ptr<Stop> stop;
    Thread::Schedule before;
    std::int64_t number, passed_ns;
    system::Clock::time_point woke;
    bool remote;
    KernelChain kernel;  // where it was at that tick
  };
  // A thread whose CPU this CPU sampler has taken, according to the log of its switches.
  struct Met {
    std::shared_ptr<TrackedThread> watch;  // null: there is none
    SwitchLog::Switch lost;
  };
  void look_at_met(std::int64_t number);
  void note_kernel(pid_t tid, KernelChain& chain) const;
  // A place for the result of a look; null if there is no room, or the reader is in use by another
  // thread.
  TickResult* open_look(const std::shared_ptr<TrackedThread>& watch, std::int64_t number,
                        std::shared_ptr<const StackReader::Prediction>& predicted);
  void arrived(Asked asked);
  void read(const Asked& asked);
  void count_stop(const Asked& asked, TickResult& found);

  CpuSamplers& all_;
  const int cpu_;
  const int phase_;
  Ward& ward_;
  bool placed_ = false;  // it runs on cpu_, as it should
  bool leaves_ = false;  // it has starved there, and parks as soon as it can
  pthread_t thread_{};
  bool exists_ = false;
  std::atomic<bool> active_ = false, ends_ = false, ended_ = false, real_time_ = false, asked_again_ = false;
  sem_t wanted_{};
  Tracer tracer_{std::chrono::milliseconds(50)};
  std::vector<Candidate> candidates_;
  std::map<int, std::pair<Candidate*, std::int64_t>> busiest_;  // the remote one of each CPU; its time on it, ns
  Met met_;
  KernelLog* kernel_log_ = nullptr;  // of cpu_; nullptr: not asked for, or luaspy may not stay there
  system::Clock::time_point due_;    // of the tick
  std::vector<Asked> asked_;
  std::unique_ptr<system::Alarm> alarm_;  // this thread's
  system::Clock::time_point woke_, settled_;
  std::int64_t passed_ns_ = 0;  // of the thread being accounted for
  std::unique_ptr<Thread> own_thread_;
  std::int64_t waited_before_ = 0;  // how long own_thread_ had waited for a CPU when it went to sleep, ns; not used for
                                    // a real-time thread
  std::optional<std::int64_t> clock_offset_;  // system::Clock minus the scheduler's clock, ns
  system::Clock::time_point offset_asked_;
  std::array<std::unique_ptr<TickResult>, ring_size> ring_;
  std::atomic<std::size_t> put_ = 0, taken_ = 0;
};

}  // namespace luaspy
