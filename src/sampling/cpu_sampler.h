#pragma once
// One luaspy thread on one CPU: it sleeps until a tick is due, or a thread that it has asked to stop does so. What it
// does then is in cpu_tick.h and cpu_looks.h. cpu_samplers.h explains why, and manages all of them.

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <vector>

#include "attach/own_cpu.h"
#include "attach/urgency.h"
#include "sampling/cpu_looks.h"
#include "sampling/cpu_sampler_host.h"
#include "sampling/cpu_tick.h"
#include "sampling/result_ring.h"
#include "sampling/watchdog.h"
#include "system/calls.h"

namespace luaspy {

class CpuSampler {
 public:
  CpuSampler(CpuSamplerHost& host, int cpu, int place, Ward& ward)
      : host_(host),
        cpu_(cpu),
        phase_(place % 4),
        ward_(ward),
        looks_(host, results_, cpu),
        tick_(host, looks_, results_, cpu) {}
  ~CpuSampler() {
    if (exists_) pthread_join(thread_, nullptr);
    sem_destroy(&wanted_);
  }

  int cpu() const { return cpu_; }
  bool active() const { return active_; }
  std::int64_t waits_since() const { return looks_.waits_since(); }
  // What it finds; the main thread's end.
  ResultRing& results() { return results_; }

  void deactivate() { active_ = false; }
  void activate() {
    tick_.keep();
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

 private:
  void begin();
  static void* main(void* self);
  void run();
  void come_to_cpu();
  void park();
  bool leave_cpu();
  void tick(std::int64_t number, system::Clock::time_point due);
  void wait_until(system::Clock::time_point due);
  bool came_at_once(system::Clock::time_point due) const;

  CpuSamplerHost& host_;
  const int cpu_;
  const int phase_;
  Ward& ward_;
  ResultRing results_;
  CpuLooks looks_;
  CpuTick tick_;
  bool placed_ = false;  // it runs on cpu_, as it should
  bool leaves_ = false;  // it has starved there, and parks as soon as it can
  pthread_t thread_{};
  bool exists_ = false;
  std::atomic<bool> active_ = false, ends_ = false, ended_ = false, real_time_ = false;
  sem_t wanted_{};
  KernelLog* kernel_log_ = nullptr;       // of cpu_; nullptr: not asked for, or luaspy may not stay there
  std::unique_ptr<system::Alarm> alarm_;  // this thread's
  system::Clock::time_point woke_, placed_at_;
  std::unique_ptr<Thread> own_thread_;
  std::int64_t waited_before_ = 0;  // how long own_thread_ had waited for a CPU when it went to sleep, ns; not used for
                                    // a real-time thread
};

}  // namespace luaspy
