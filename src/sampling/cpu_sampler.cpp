#include "sampling/cpu_sampler.h"

#include <unistd.h>

#include <algorithm>

#include "attach/own_cpu.h"

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

void CpuSampler::begin() {
  sem_init(&wanted_, 0, 0);
  exists_ = start_thread(thread_, main, this);
  if (!exists_) active_ = false;
}

void* CpuSampler::main(void* self) {
  static_cast<CpuSampler*>(self)->run();
  return nullptr;
}

// Its own CPU, and urgency. The watchdog may have changed both.
void CpuSampler::come_to_cpu() {
  placed_at_ = Clock::now();
  ward_.begin();
  if (host_.priority() != 0) real_time_ = come_at_once(host_.priority());
  else come_soon();
  if (real_time_ && host_.stands_above()) (void)make_real_time(0, host_.priority());
  placed_ = stay_on({cpu_});
  if (placed_) ward_.stays();
  leaves_ = false;
}

void CpuSampler::run() {
  come_to_cpu();
  own_thread_ = std::make_unique<Thread>(::getpid(), ::gettid());
  const CpuSamplerOptions& options = host_.options();
  if (options.kernel != nullptr && placed_) kernel_log_ = options.kernel->at(cpu_).get();
  looks_.begin(*own_thread_, kernel_log_);
  alarm_ = std::make_unique<system::Alarm>();
  constexpr Clock::duration linger = 2s, try_again = 10s;
  Clock::time_point needed = Clock::now();
  std::int64_t number = 0;
  const auto phase = options.grid.interval() * phase_ / 16;  // so that CPU samplers do not look at the same process at
                                                             // the same time
  while (!ends_) {
    number = std::max(number + 1, options.grid.after(Clock::now() - phase));
    const Clock::time_point due = options.grid.time_of(number) + phase;
    if (kernel_log_ != nullptr) kernel_log_->expect(due);
    wait_until(due);
    if (ends_) break;
    woke_ = Clock::now();
    tick(number, due);
    host_.add_work(cpu_, to_ns(Clock::now() - woke_));
    if (ward_.was_lowered()) real_time_ = false;
    if (placed_ && !ward_.stays_still()) {
      placed_ = false, leaves_ = true;
      host_.leave_alone(cpu_);
    }
    if (leaves_ && leave_cpu()) continue;
    if (!real_time_ && host_.priority() != 0 && woke_ - placed_at_ > try_again) come_to_cpu();
    if (tick_.was_needed() || looks_.asks()) needed = woke_;
    if (woke_ - needed > linger) {
      park();
      needed = Clock::now();
    }
  }
  // Threads that are still asked to stop are released as soon as they do, or when this thread ends.
  // The kernel releases what is still traced then, and needs no stop for that.
  for (const Clock::time_point end = Clock::now() + 50ms; looks_.awaits() && Clock::now() < end;)
    wait_until(Clock::now() + 5ms);
  looks_.give_up();
  alarm_ = nullptr;
  ward_.end();
  ended_ = true;
}

void CpuSampler::tick(std::int64_t number, Clock::time_point due) {
  if (!host_.begin_tick(number, woke_)) return;
  const bool in_time = real_time_ || came_at_once(due);
  tick_.run({number, due, woke_, host_.skipped()}, in_time, placed_);
}

// A CPU sampler that has to wait for the CPU gets it when the target gives it up: at the end of its
// time slices, and at system calls that make the kernel check the clock. That biases the samples.
// Measured as an ordinary user beside 8 threads, a call that takes 2.1 % of the time had 2.3 % of
// the ticks that came within 30 µs, 4.2 % within 60 and 6.5 % within 150. A timer that expires late
// does no harm, because the target does not influence it.
bool CpuSampler::came_at_once(Clock::time_point due) const {
  constexpr std::int64_t at_once = 15'000;  // ns
  const Thread::Schedule now = own_thread_->schedule();
  if (now.runs == 0) return woke_ - due < 40us;  // the kernel does not report it
  return now.waited_for_cpu - waited_before_ < at_once;
}

// Until the tick is due, looks at the threads that were asked to stop, each as soon as it stops.
void CpuSampler::wait_until(Clock::time_point due) {
  constexpr Clock::duration soon = 20us;  // an alarm set for such a time might come before the wait begins
  ward_.expect(due);
  while (Clock::now() < due - (looks_.asks() ? soon : 0us)) {
    if (!real_time_) waited_before_ = own_thread_->schedule().waited_for_cpu;
    if (!looks_.awaits()) {
      if (system::sleep_until(due) || ends_) return;
      continue;
    }
    alarm_->set(due);
    pid_t tid = 0;
    const system::WaitStatus status = system::wait_for_any(tid);
    if (status.kind == system::WaitStatus::Kind::interrupted) {
      if (ends_) return;
    } else if (tid <= 0) {
      looks_.forget_all();
    } else {
      looks_.handle(tid, status);
    }
  }
}

// The target has not executed here for a long time. Another CPU sampler takes over its sleeping
// threads.
void CpuSampler::park() {
  if (!host_.retire(*this)) return;
  if (kernel_log_ != nullptr) kernel_log_->pause();
  ward_.pause();
  while (!ends_ && !active_) (void)sem_wait(&wanted_);
  come_to_cpu();
}

// The CPU sampler has starved on its CPU, and the watchdog has let it run elsewhere. What is on that CPU is now
// looked at from another one, if there is one. False: there is none, or threads were asked to stop, which
// only this CPU sampler can release.
bool CpuSampler::leave_cpu() {
  if (looks_.awaits() || !host_.need_other(cpu_)) return false;
  park();
  return true;
}

}  // namespace luaspy
