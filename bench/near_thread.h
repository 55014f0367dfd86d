#pragma once
// A thread of luaspy that works on the CPU where the target's thread runs. If a thread is stopped
// from its own CPU, the stop is seen as soon as the CPU sampler gives up that CPU, which takes a third
// of the time of a notification to another CPU. Everything else is better done on another CPU.

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <functional>

#include "system/calls.h"

namespace luaspy {

class NearThread {
 public:
  // The thread is created on first use, so that a command started before does not inherit its
  // priority. If luaspy may use only one CPU, there is no thread: run() then runs the job in the
  // calling thread.
  NearThread() = default;
  ~NearThread();
  NearThread(const NearThread&) = delete;
  NearThread& operator=(const NearThread&) = delete;

  // Runs `job` on `cpu` (-1, or one that luaspy may not use: where it ran last) and waits for its
  // end. A signal to the caller meanwhile also interrupts the job's system call. Only a job can
  // detach what a job traces: to the kernel this thread is the tracer.
  void run(int cpu, const std::function<void()>& job);
  // From now on the calling thread leaves `cpu` to the target, if there are other CPUs.
  void keep_off(int cpu);

 private:
  static void* main(void* self);
  void begin();
  void place(int cpu);
  void record_start();

  pthread_t thread_{};
  bool begun_ = false, exists_ = false, ends_ = false;
  int cpu_ = -1;
  cpu_set_t usable_{};
  const std::function<void()>* job_ = nullptr;
  system::Clock::time_point posted_;
  int jobs_ = 0, late_ = 0;
  bool stays_away_ = false;  // it does not get that CPU at once: from another CPU a thread is stopped later, but not at
                             // a special moment
  sem_t begin_{}, done_{};
};

}  // namespace luaspy
