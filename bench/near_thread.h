#pragma once
// A thread of luaspy's own that works on the CPU where the target's thread runs. A thread that is
// stopped from its own CPU is seen to stop when the CPU is given up to it, in a third of the time
// that it takes to tell another CPU; everything else is better done on another one.

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <functional>

#include "system/calls.h"

namespace luaspy {

class NearThread {
 public:
  // It begins to exist when it is used: a command that is started before inherits none of its
  // priority. No thread is made where luaspy may use one CPU only: run() then runs the job where it
  // is.
  NearThread() = default;
  ~NearThread();
  NearThread(const NearThread&) = delete;
  NearThread& operator=(const NearThread&) = delete;

  // Runs `job` on `cpu` (-1, or one that luaspy may not use: where it ran last) and waits for its
  // end. A signal that comes to the caller meanwhile interrupts the job's system call, too. What is
  // traced by a job can be let go by a job only: to the kernel this thread is the tracer.
  void run(int cpu, const std::function<void()>& job);
  // The calling thread leaves `cpu` to the target from now on, if there are others.
  void keep_off(int cpu);

 private:
  static void* main(void* self);
  void begin();
  void place(int cpu);
  void note_start();

  pthread_t thread_{};
  bool begun_ = false, exists_ = false, ends_ = false;
  int cpu_ = -1;
  cpu_set_t usable_{};
  const std::function<void()>* job_ = nullptr;
  system::Clock::time_point posted_;
  int jobs_ = 0, late_ = 0;
  bool stays_away_ = false;  // it is not let run at once there: from another CPU a thread is stopped later, but at no
                             // special moment
  sem_t begin_{}, done_{};
};

}  // namespace luaspy
