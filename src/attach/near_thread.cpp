#include "attach/near_thread.h"

#include <signal.h>

namespace luaspy {

NearThread::NearThread() {
  sem_init(&begin_, 0, 0);
  sem_init(&done_, 0, 0);
  CPU_ZERO(&usable_);
  if (sched_getaffinity(0, sizeof usable_, &usable_) != 0 || CPU_COUNT(&usable_) < 2) return;
  // Signals are the caller's to hear of.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGALRM);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  exists_ = pthread_create(&thread_, nullptr, main, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

NearThread::~NearThread() {
  if (exists_) {
    ends_ = true;
    sem_post(&begin_);
    pthread_join(thread_, nullptr);
  }
  sem_destroy(&begin_);
  sem_destroy(&done_);
}

void NearThread::keep_off(int cpu) {
  if (!exists_ || cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t others = usable_;
  CPU_CLR(cpu, &others);
  (void)sched_setaffinity(0, sizeof others, &others);
}

void NearThread::run(int cpu, const std::function<void()>& job) {
  if (!exists_) {
    job();
    return;
  }
  if (cpu >= 0 && cpu != cpu_ && cpu < CPU_SETSIZE) {
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    CPU_SET(cpu, &wanted);
    (void)pthread_setaffinity_np(thread_, sizeof wanted, &wanted);
    cpu_ = cpu;
  }
  job_ = &job;
  sem_post(&begin_);
  // It fails if a signal came, and for no other reason.
  while (sem_wait(&done_) != 0) pthread_kill(thread_, SIGALRM);
}

void* NearThread::main(void* self) {
  NearThread& thread = *static_cast<NearThread*>(self);
  for (;;) {
    while (sem_wait(&thread.begin_) != 0) {
    }
    if (thread.ends_) return nullptr;
    (*thread.job_)();
    sem_post(&thread.done_);
  }
}

}  // namespace luaspy
