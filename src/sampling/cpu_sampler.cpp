// The CPU sampler's thread, and its looks: without a stop, or at threads that it has asked to stop.

#include "sampling/cpu_sampler.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "attach/own_cpu.h"
#include "system/calls.h"

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
void CpuSampler::settle_on_cpu() {
  settled_ = Clock::now();
  ward_.begin();
  if (all_.priority() != 0) real_time_ = come_at_once(all_.priority());
  else come_soon();
  if (real_time_ && all_.stands_above()) (void)make_real_time(0, all_.priority());
  placed_ = stay_on({cpu_});
  if (placed_) ward_.stays();
  leaves_ = false;
}

void CpuSampler::run() {
  settle_on_cpu();
  own_thread_ = std::make_unique<Thread>(::getpid(), ::gettid());
  if (all_.kernel_ != nullptr && placed_) kernel_log_ = all_.kernel_->at(cpu_).get();
  alarm_ = std::make_unique<system::Alarm>();
  constexpr Clock::duration linger = 2s, try_again = 10s;
  Clock::time_point needed = Clock::now();
  std::int64_t number = 0;
  const auto phase = all_.grid_.interval() * phase_ / 16;  // so that CPU samplers do not look at the same process at
                                                           // the same time
  while (!ends_) {
    number = std::max(number + 1, all_.grid_.after(Clock::now() - phase));
    const Clock::time_point due = all_.grid_.time_of(number) + phase;
    if (kernel_log_ != nullptr) kernel_log_->expect(due);
    wait_until(due);
    if (ends_) break;
    woke_ = Clock::now();
    tick(number, due);
    all_.add_work(cpu_, to_ns(Clock::now() - woke_));
    if (ward_.was_lowered()) real_time_ = false;
    if (placed_ && !ward_.stays_still()) {
      placed_ = false, leaves_ = true;
      all_.leave_alone(cpu_);
    }
    if (leaves_ && leave_cpu()) continue;
    if (!real_time_ && all_.priority() != 0 && woke_ - settled_ > try_again) settle_on_cpu();
    if (asked_again_.exchange(false) || !asked_.empty()) needed = woke_;
    if (woke_ - needed > linger) {
      park();
      needed = Clock::now();
    }
  }
  // Threads that are still asked to stop are released as soon as they do, or when this thread ends.
  // The kernel releases what is still traced then, and needs no stop for that.
  for (const Clock::time_point end = Clock::now() + 50ms;
       (!asked_.empty() || tracer_.has_pending()) && Clock::now() < end;)
    wait_until(Clock::now() + 5ms);
  for (const Asked& asked : asked_) asked.watch->request.end();
  asked_.clear();
  alarm_ = nullptr;
  ward_.end();
  ended_ = true;
}

// Until the tick is due, handles the threads that were asked to stop, each as soon as it stops.
void CpuSampler::wait_until(Clock::time_point due) {
  constexpr Clock::duration soon = 20us;  // an alarm set for such a time might come before the wait begins
  ward_.expect(due);
  while (Clock::now() < due - (asked_.empty() ? 0us : soon)) {
    if (!real_time_) waited_before_ = own_thread_->schedule().waited_for_cpu;
    if (asked_.empty() && !tracer_.has_pending()) {
      if (system::sleep_until(due) || ends_) return;
      continue;
    }
    alarm_->set(due);
    pid_t tid = 0;
    const system::WaitStatus status = system::wait_for_any(tid);
    if (status.kind == system::WaitStatus::Kind::interrupted) {
      if (ends_) return;
      continue;
    }
    if (tid <= 0) {  // nothing is traced: the threads that were asked are gone
      for (const Asked& asked : asked_) asked.watch->request.end();
      asked_.clear();
      tracer_.forget_all();  // otherwise the next wait would return at once, and a real-time thread would spin
      continue;
    }
    const auto asked = std::ranges::find_if(asked_, [&](const Asked& each) { return each.stop->tid() == tid; });
    if (asked == asked_.end()) {
      if (status.kind == system::WaitStatus::Kind::ended) tracer_.forget(tid);
      else if (status.kind == system::WaitStatus::Kind::stopped) (void)system::detach(tid, status.signal);
      continue;
    }
    Asked taken = std::move(*asked);
    asked_.erase(asked);
    taken.stop->arrive(status);
    arrived(std::move(taken));
  }
}

// The target has not executed here for a long time. Another CPU sampler takes over its sleeping
// threads.
void CpuSampler::park() {
  if (!all_.retire(*this)) return;
  if (kernel_log_ != nullptr) kernel_log_->rest();
  ward_.rest();
  while (!ends_ && !active_) (void)sem_wait(&wanted_);
  settle_on_cpu();
}

// The CPU sampler has starved on its CPU, and the watchdog has let it run elsewhere. What is on that CPU is now
// looked at from another one, if there is one. False: there is none, or threads were asked to stop, which
// only this CPU sampler can release.
bool CpuSampler::leave_cpu() {
  if (!asked_.empty() || tracer_.has_pending() || !all_.need_other(cpu_)) return false;
  park();
  return true;
}

// A CPU sampler whose thread was in the kernel at the tick gets the CPU when the thread returns from there, or falls
// asleep: it has executed then.
void CpuSampler::look_at_sleeping(const std::shared_ptr<TrackedThread>& watch, const Thread::Schedule& now,
                                  std::int64_t number) {
  KernelChain kernel;
  note_kernel(watch->thread->tid(), kernel);
  if (!all_.idle_ && kernel.empty()) {
    ++watch->idle;
    account(*watch, number, &now, true);
    return;
  }
  const ThreadState state = watch->thread->state();
  account(*watch, number, &now, state.kind == ThreadState::Kind::sleeping && kernel.empty());
  TickResult* const found = open_found(watch, number);
  if (found == nullptr) {
    ++watch->late;
    return;
  }
  found->loss = Loss::moved;
  Sampler& sampler = watch->session.sampler();
  if (state.kind == ThreadState::Kind::sleeping && sampler.reader().lock_soon()) {
    std::shared_ptr<const StackReader::Prediction> predicted;
    {
      const std::lock_guard lock(watch->prediction_lock);
      predicted = watch->prediction;
    }
    found->loss = sampler.read_asleep(*watch->thread, state, *predicted, found->look);
    sampler.reader().unlock();
    found->look.kernel = kernel;
    if (found->loss == Loss::none) found->kind = TickResult::Kind::look;
  }
  if (found->loss != Loss::none) watch->slept = false;  // read it at the next tick
  put();
}

bool CpuSampler::looks_in_vain(TrackedThread& watch, std::int64_t number) const {
  if (watch.looks.is_due(number, all_.grid_.interval())) return false;
  ++watch.in_vain;
  return true;
}

// exec ends all other threads of a process. A traced thread has not ended until its tracer has
// received the report, and until then PTRACE_SEIZE of the thread in exec blocks (ptrace(2),
// kernel/ptrace.c: cred_guard_mutex). So a tracer that seizes one thread while it traces another
// could wait for itself.
bool CpuSampler::traces(Session& session) const {
  return std::ranges::any_of(asked_, [&](const Asked& asked) { return &asked.watch->session == &session; }) ||
         tracer_.has_pending_of(session.target().process().pid());
}

void CpuSampler::ask(const std::shared_ptr<TrackedThread>& watch, const Thread::Schedule& before, std::int64_t number,
                     bool remote) {
  account(*watch, number, &before, false);
  if (looks_in_vain(*watch, number)) return;
  if (traces(watch->session)) {
    ++watch->not_stopped;
    return;
  }
  auto stop = std::make_unique<Stop>(tracer_, watch->session.target(), watch->thread->tid(), Stop::Later{});
  Asked asked{watch, std::move(stop), before, number, passed_ns_, woke_, remote, {}};
  note_kernel(watch->thread->tid(), asked.kernel);
  if (asked.stop->outcome() != Stop::Outcome::pending) return arrived(std::move(asked));
  watch->request.ask(cpu_);
  asked_.push_back(std::move(asked));
}

TickResult* CpuSampler::open_look(const std::shared_ptr<TrackedThread>& watch, std::int64_t number,
                                  std::shared_ptr<const StackReader::Prediction>& predicted) {
  TickResult* const found = open_found(watch, number);
  if (found == nullptr || !watch->session.sampler().reader().lock_soon()) return nullptr;
  static const auto none = std::make_shared<const StackReader::Prediction>();
  predicted = none;
  if (watch->prediction_lock.try_lock()) {
    predicted = watch->prediction;
    watch->prediction_lock.unlock();
  }
  return found;
}

// The thread has no CPU until this CPU sampler sleeps, unless another CPU picks it up.
void CpuSampler::look_at_met(std::int64_t number) {
  const std::shared_ptr<TrackedThread>& watch = met_.watch;
  account(*watch, number, nullptr, false);
  if (looks_in_vain(*watch, number)) return;
  std::shared_ptr<const StackReader::Prediction> predicted;
  TickResult* const found = open_look(watch, number, predicted);
  if (found == nullptr) {
    ++watch->late;  // the main thread does not keep up
    return;
  }
  Sampler& sampler = watch->session.sampler();
  found->loss = sampler.read_without_stop(*watch->switches, met_.lost, *predicted, found->look);
  sampler.reader().unlock();
  note_kernel(watch->thread->tid(), found->look.kernel);
  found->kind = found->loss == Loss::none ? TickResult::Kind::look : TickResult::Kind::loss;
  found->stopped_ns = found->look.stopped_ns;
  all_.add_stop(watch->thread->tid(), found->stopped_ns);
  put();
}

void CpuSampler::note_kernel(pid_t tid, KernelChain& chain) const {
  if (kernel_log_ != nullptr) kernel_log_->at(due_, tid, chain);
}

// The thread is stopped, or cannot be stopped.
void CpuSampler::arrived(Asked asked) {
  TrackedThread& watch = *asked.watch;
  if (!watch.request.begin_look()) {  // its session is being dropped
    asked.stop->resume();
    return watch.request.end();
  }
  read(asked);
  watch.request.end();  // afterwards its session may be dropped, once what was put is taken
}

void CpuSampler::read(const Asked& asked) {
  TrackedThread& watch = *asked.watch;
  std::shared_ptr<const StackReader::Prediction> predicted;
  TickResult* const found = open_look(asked.watch, asked.number, predicted);
  if (found == nullptr) {
    all_.add_stop(watch.thread->tid(), asked.stop->resume().count());
    ++watch.late;  // the main thread does not keep up
    return;
  }
  found->at = asked.woke;
  found->passed_ns = asked.passed_ns;
  found->remote = asked.remote;
  Sampler& sampler = watch.session.sampler();
  found->loss = sampler.read_stopped(*asked.stop, *watch.thread, *predicted, found->look);
  found->look.kernel = asked.kernel;
  sampler.reader().unlock();
  found->kind = found->loss == Loss::none ? TickResult::Kind::look : TickResult::Kind::loss;
  if (found->look.stopped_ns != 0) count_stop(asked, *found);
  put();
}

// Determines how long the thread was stopped, and whether it is still where it executed at the
// tick.
void CpuSampler::count_stop(const Asked& asked, TickResult& found) {
  TrackedThread& watch = *asked.watch;
  const Sampler::Look& look = found.look;
  const std::int64_t runs = static_cast<std::int64_t>(look.schedule.runs - asked.before.runs),
                     waited = look.schedule.waited_for_cpu - asked.before.waited_for_cpu;
  constexpr std::int64_t tolerated = 20'000;  // ns
  // When the CPU sampler leaves the CPU, another thread may get it first: luaspy did not cause that
  // wait.
  const std::int64_t taken = std::max<std::int64_t>(waited - to_ns(asked.stop->requested() - asked.woke) - tolerated,
                                                    0);
  found.stopped_ns = std::max(look.stopped_ns - taken, look.held_ns);
  watch.schedule = look.schedule;
  watch.schedule_at = look.seen;
  if (asked.before.runs != 0 && runs == 0 && !asked.remote) {
    // It continued on its CPU without losing it, so the interrupt came from another CPU.
    found.kind = TickResult::Kind::loss;
    found.loss = Loss::elsewhere;
  } else if (waited > to_ns(look.seen - asked.woke) + tolerated) {
    found.stopped_ns = look.held_ns;  // it was already waiting when the tick came
    found.kind = all_.idle_ ? TickResult::Kind::waiting : TickResult::Kind::loss;
    found.loss = Loss::none;  // only the time that it was stopped counts
    if (!all_.idle_) ++watch.waited;
  }
  all_.add_stop(watch.thread->tid(), found.stopped_ns);
}

TickResult* CpuSampler::open_found(const std::shared_ptr<TrackedThread>& watch, std::int64_t number) {
  if (put_ - taken_.load(std::memory_order_acquire) == ring_size) return nullptr;
  std::unique_ptr<TickResult>& place = ring_[put_ % ring_size];
  const Memory& memory = watch->session.target().memory();
  if (place == nullptr || place->watch == nullptr || place->watch->program != watch->program)
    place = std::make_unique<TickResult>(memory);
  place->watch = watch;
  place->number = number;
  place->at = woke_;
  place->passed_ns = passed_ns_;
  place->kind = TickResult::Kind::loss;
  place->loss = Loss::none;
  place->stopped_ns = 0;
  place->cpu = watch->cpu;
  place->remote = false;
  return place.get();
}

}  // namespace luaspy
