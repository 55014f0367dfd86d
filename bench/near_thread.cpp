#include "near_thread.h"

#include <signal.h>

#include <utility>

#include "attach/own_cpu.h"

namespace luaspy {

void NearThread::begin() {
  if (std::exchange(begun_, true)) return;
  sem_init(&begin_, 0, 0);
  sem_init(&done_, 0, 0);
  CPU_ZERO(&usable_);
  come_soon();
  if (sched_getaffinity(0, sizeof usable_, &usable_) != 0 || CPU_COUNT(&usable_) < 2) return;
  exists_ = start_thread(thread_, main, this);
}

NearThread::~NearThread() {
  if (!begun_) return;
  if (exists_) {
    ends_ = true;
    sem_post(&begin_);
    pthread_join(thread_, nullptr);
  }
  sem_destroy(&begin_);
  sem_destroy(&done_);
}

void NearThread::keep_off(int cpu) {
  begin();
  if (!exists_ || cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t others = usable_;
  CPU_CLR(cpu, &others);
  (void)sched_setaffinity(0, sizeof others, &others);
}

void NearThread::place(int cpu) {
  cpu_set_t wanted = usable_;
  if (stays_away_) {
    CPU_CLR(cpu, &wanted);
  } else {
    CPU_ZERO(&wanted);
    CPU_SET(cpu, &wanted);
  }
  (void)pthread_setaffinity_np(thread_, sizeof wanted, &wanted);
  cpu_ = cpu;
}

void NearThread::run(int cpu, const std::function<void()>& job) {
  begin();
  if (!exists_) {
    job();
    return;
  }
  if (cpu >= 0 && cpu != cpu_ && cpu < CPU_SETSIZE) place(cpu);
  job_ = &job;
  posted_ = system::Clock::now();
  sem_post(&begin_);
  // sem_wait() only fails if a signal came.
  while (sem_wait(&done_) != 0) pthread_kill(thread_, SIGALRM);
}

void NearThread::record_start() {
  constexpr std::chrono::microseconds at_once(300);  // waking takes tens of µs, waiting for the end of a slice takes ms
  constexpr int considered = 64, tolerated = 8;
  late_ += system::Clock::now() - posted_ > at_once;
  if (++jobs_ % considered != 0) return;
  if (late_ > tolerated && !stays_away_) stays_away_ = true, cpu_ = -1;
  late_ = 0;
}

void* NearThread::main(void* self) {
  NearThread& thread = *static_cast<NearThread*>(self);
  (void)come_at_once();
  for (;;) {
    while (sem_wait(&thread.begin_) != 0) {
    }
    if (thread.ends_) return nullptr;
    thread.record_start();
    (*thread.job_)();
    sem_post(&thread.done_);
  }
}

}  // namespace luaspy
