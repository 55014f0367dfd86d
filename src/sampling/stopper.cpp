#include "sampling/stopper.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "attach/own_cpu.h"
#include "system/calls.h"

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

void Stopper::begin() {
  sem_init(&wanted_, 0, 0);
  exists_ = start_thread(thread_, main, this);
  if (!exists_) active_ = false;
}

void* Stopper::main(void* self) {
  static_cast<Stopper*>(self)->run();
  return nullptr;
}

// Its own CPU, and urgency. The watchdog may have changed both.
void Stopper::settle_on_cpu() {
  settled_ = Clock::now();
  ward_.begin();
  if (all_.priority() != 0) real_time_ = come_at_once(all_.priority());
  else come_soon();
  if (real_time_ && all_.stands_above()) (void)make_real_time(0, all_.priority());
  placed_ = stay_on({cpu_});
  if (placed_) ward_.stays();
  leaves_ = false;
}

void Stopper::run() {
  settle_on_cpu();
  own_thread_ = std::make_unique<Thread>(::getpid(), ::gettid());
  if (all_.kernel_ != nullptr && placed_) kernel_log_ = all_.kernel_->at(cpu_).get();
  alarm_ = std::make_unique<system::Alarm>();
  constexpr Clock::duration linger = 2s, try_again = 10s;
  Clock::time_point needed = Clock::now();
  std::int64_t number = 0;
  const auto phase = all_.grid_.interval() * phase_ / 16;  // so that stoppers do not look at the same process at the
                                                           // same time
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
void Stopper::wait_until(Clock::time_point due) {
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

// The target has not executed here for a long time. Another stopper takes over its sleeping
// threads.
void Stopper::park() {
  if (!all_.retire(*this)) return;
  if (kernel_log_ != nullptr) kernel_log_->rest();
  ward_.rest();
  while (!ends_ && !active_) (void)sem_wait(&wanted_);
  settle_on_cpu();
}

// The stopper has starved on its CPU, and the watchdog has let it run elsewhere. What is on that CPU is now
// looked at from another one, if there is one. False: there is none, or threads were asked to stop, which
// only this stopper can release.
bool Stopper::leave_cpu() {
  if (!asked_.empty() || tracer_.has_pending() || !all_.need_other(cpu_)) return false;
  park();
  return true;
}

void Stopper::tick(std::int64_t number, Clock::time_point due) {
  if (!all_.begin_tick(number, woke_)) return;
  const bool in_time = real_time_ || came_at_once(due);
  const auto roster = all_.roster();
  candidates_.clear();
  met_ = {};
  due_ = due;
  for (const std::shared_ptr<Watch>& watch : *roster) {
    if (!watch->claim.try_take()) continue;
    if (watch->tick < number && (watch->cpu == cpu_ || !watch->slept) && !is_asked(*watch, number))
      consider(watch, number, due);
    else watch->claim.give_back();
  }
  settle_candidates(number, in_time);
}

// A stopper that has to wait for the CPU gets it when the target gives it up: at the end of its
// time slices, and at system calls that make the kernel check the clock. That biases the samples.
// Measured as an ordinary user beside 8 threads, a call that takes 2.1 % of the time had 2.3 % of
// the ticks that came within 30 µs, 4.2 % within 60 and 6.5 % within 150. A timer that expires late
// does no harm, because the target does not influence it.
bool Stopper::came_at_once(Clock::time_point due) const {
  constexpr std::int64_t at_once = 15'000;  // ns
  const Thread::Schedule now = own_thread_->schedule();
  if (now.runs == 0) return woke_ - due < 40us;  // the kernel does not report it
  return now.waited_for_cpu - waited_before_ < at_once;
}

// A thread that was asked to stop belongs to that stopper until it stops. The tick of the request
// has been counted.
bool Stopper::is_asked(Watch& watch, std::int64_t number) {
  const int asked_by = watch.request.asked_by();
  if (asked_by == StopRequest::nobody) return false;
  if (asked_by != cpu_) return true;
  const Thread::Schedule now = watch.thread->schedule();
  const bool ran = now.runs == 0 || now.on_cpu != watch.schedule.on_cpu;
  account(watch, number, &now, false);
  constexpr Clock::duration overdue = 1s;
  const auto asked = std::ranges::find_if(asked_, [&](const Asked& each) { return each.watch.get() == &watch; });
  if (asked != asked_.end() && woke_ - asked->woke > overdue && asked->stop->take_unheard()) {
    ++all_.unheard_;
    Asked taken = std::move(*asked);
    asked_.erase(asked);
    arrived(std::move(taken));
    return true;
  }
  ++(ran ? watch.not_stopped : watch.waited);  // a thread without a CPU cannot stop
  return true;
}

// The thread executed here when the tick was due if its CPU has been taken away since then. False:
// the log cannot answer that.
bool Stopper::consider_by_log(const std::shared_ptr<Watch>& watch, std::int64_t number, Clock::time_point due) {
  const SwitchLog::Switch last = watch->switches->last();
  if (last.kind != SwitchLog::Switch::Kind::taken) return false;
  if (last.cpu == cpu_ && last.at >= due && met_.watch == nullptr) {
    watch->cpu = cpu_;
    asked_again_ = true;
    met_ = {watch, last};
    return true;
  }
  if (watch->cpu != cpu_) return false;
  waits(watch, number, nullptr);
  watch->claim.give_back();
  return true;
}

// The claim is kept for candidates and for met_, and given back for all others.
void Stopper::consider(const std::shared_ptr<Watch>& watch, std::int64_t number, Clock::time_point due) {
  if (placed_ && watch->switches != nullptr && !all_.is_preceded_by(*watch) && consider_by_log(watch, number, due))
    return;
  const bool mine = watch->cpu == cpu_;
  const Thread::Schedule now = watch->thread->schedule();
  const bool ran = now.runs == 0 || now.runs != watch->schedule.runs;
  if (mine && watch->slept && !ran) {
    account(*watch, number, &now, true);
    if (!all_.idle_) ++watch->idle;
    else if (Found* const found = open_found(watch, number)) found->kind = Found::Kind::asleep_again, put();
    else ++watch->late;  // the main thread does not keep up
    return watch->claim.give_back();
  }
  if (!mine && !ran) return watch->claim.give_back();  // it has not moved
  consider_place(watch, now, number, due);
}

// Where a thread is that has moved, or has run since its last tick, or was not asleep then.
void Stopper::consider_place(const std::shared_ptr<Watch>& watch, const Thread::Schedule& now, std::int64_t number,
                             Clock::time_point due) {
  const bool mine = watch->cpu == cpu_, precedes = all_.is_preceded_by(*watch);
  const Thread::Place place = watch->thread->place();
  if (place.letter == 'R' && precedes) return consider_preceding(watch, now, place, number, due);
  if (place.letter == 'R' && place.cpu == cpu_) {
    watch->cpu = cpu_;
    asked_again_ = true;
    candidates_.push_back({watch, now, place.cpu, !placed_});
    return;
  }
  if (place.letter == 'R' && mine) {
    if (all_.need(place.cpu)) {
      watch->cpu = place.cpu;
      watch->moved = true;
    } else {
      candidates_.push_back({watch, now, place.cpu, true});
      asked_again_ = true;
      return;
    }
  } else if (mine && (place.letter == '?' || place.letter == 'Z' || place.letter == 'X')) {
    account(*watch, number, &now, true);
    watch->tick = std::numeric_limits<std::int64_t>::max();
    if (Found* const found = open_found(watch, number))
      found->kind = Found::Kind::loss, found->loss = Loss::ended, put();
  } else if (mine) {
    look_at_sleeping(watch, now, number);
  }
  watch->claim.give_back();
}

// A thread that can run and precedes this stopper does not execute where the stopper does. It may have when
// the tick was due, if the stopper came late.
void Stopper::consider_preceding(const std::shared_ptr<Watch>& watch, const Thread::Schedule& now,
                                 const Thread::Place& place, std::int64_t number, Clock::time_point due) {
  constexpr Clock::duration at_once = 200us;
  if (watch->cpu != cpu_) return watch->claim.give_back();
  asked_again_ = true;
  if (place.cpu != cpu_ || !placed_) {
    all_.from_elsewhere_ = true;
    candidates_.push_back({watch, now, place.cpu, true});
    return;
  }
  (void)all_.assign_elsewhere(*watch, cpu_);
  if (woke_ - due < at_once) {
    waits(watch, number, &now);
  } else {
    ++watch->late;
    account(*watch, number, &now, false);
  }
  watch->claim.give_back();
}

// A stopper whose thread was in the kernel at the tick gets the CPU when the thread returns from there, or falls
// asleep: it has executed then.
void Stopper::look_at_sleeping(const std::shared_ptr<Watch>& watch, const Thread::Schedule& now, std::int64_t number) {
  KernelChain kernel;
  note_kernel(watch->thread->tid(), kernel);
  if (!all_.idle_ && kernel.empty()) {
    ++watch->idle;
    account(*watch, number, &now, true);
    return;
  }
  const ThreadState state = watch->thread->state();
  account(*watch, number, &now, state.kind == ThreadState::Kind::sleeping && kernel.empty());
  Found* const found = open_found(watch, number);
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
    if (found->loss == Loss::none) found->kind = Found::Kind::look;
  }
  if (found->loss != Loss::none) watch->slept = false;  // read it at the next tick
  put();
}

// Of the runnable threads of a CPU, at most one was executing: on this CPU until this stopper woke, on
// another one still. There it is the one that had the most of it since it was last looked at; the stop
// shows whether that is true.
void Stopper::choose_executing() {
  const bool alone = candidates_.size() == 1;
  bool found_here = met_.watch != nullptr;
  busiest_.clear();
  for (Candidate& candidate : candidates_) {
    if (candidate.remote) {
      const std::int64_t used = candidate.now.on_cpu - candidate.watch->schedule.on_cpu;
      const auto [busiest, is_first] = busiest_.try_emplace(candidate.cpu, &candidate, used);
      if (!is_first && used > busiest->second.second) busiest->second = {&candidate, used};
    } else if (!found_here) {
      found_here = candidate.executes = executes(*candidate.watch, candidate.now, alone);
    }
  }
  for (const auto& [cpu, busiest] : busiest_) busiest.first->executes = true;
}

void Stopper::settle_candidates(std::int64_t number, bool in_time) {
  choose_executing();
  for (const Candidate& candidate : candidates_) {
    if (!candidate.executes) {
      waits(candidate.watch, number, &candidate.now);
    } else if (in_time || (candidate.remote && placed_)) {
      ask(candidate.watch, candidate.now, number, candidate.remote);
    } else {
      ++candidate.watch->late;
      account(*candidate.watch, number, &candidate.now, false);
    }
  }
  if (met_.watch != nullptr) {
    if (in_time) {
      look_at_met(number);
    } else {
      ++met_.watch->late;
      account(*met_.watch, number, nullptr, false);
    }
    met_.watch->claim.give_back();
    met_ = {};
  }
  for (const Candidate& candidate : candidates_) candidate.watch->claim.give_back();
}

void Stopper::waits(const std::shared_ptr<Watch>& watch, std::int64_t number, const Thread::Schedule* now) {
  account(*watch, number, now, false);
  if (!all_.idle_) {
    ++watch->waited;
    return;
  }
  if (Found* const found = open_found(watch, number)) found->kind = Found::Kind::waiting, put();
  else ++watch->late;
}

// A thread that had the CPU all the time since the last tick has it now. Otherwise the time at
// which its CPU time was last counted shows when it was taken off.
bool Stopper::executes(const Watch& watch, const Thread::Schedule& now, bool alone) {
  const std::int64_t on_cpu = now.on_cpu - watch.schedule.on_cpu;
  if (now.runs != 0 && on_cpu == 0) return false;
  constexpr std::int64_t off_at_most = 300'000;  // ns: caused by luaspy itself
  if (alone && on_cpu >= to_ns(woke_ - watch.schedule_at) - off_at_most) return true;
  constexpr Clock::duration ask_again = 200ms;  // the clocks drift by some 100 ns per ms at most
  if (!clock_offset_ || woke_ - offset_asked_ > ask_again) {
    const std::optional<std::int64_t> own = own_thread_->counted_at();
    if (!own) return true;  // the kernel does not report it: what the stop finds out has to suffice
    clock_offset_ = to_ns(woke_.time_since_epoch()) - *own;
    offset_asked_ = woke_;
  }
  const std::optional<std::int64_t> counted = watch.thread->counted_at();
  constexpr std::int64_t just_now = 60'000;  // ns: waking takes some µs, the offset is some µs old
  return !counted || *counted + *clock_offset_ > to_ns(woke_.time_since_epoch()) - just_now;
}

bool Stopper::looks_in_vain(Watch& watch, std::int64_t number) const {
  if (watch.looks.is_due(number, all_.grid_.interval())) return false;
  ++watch.in_vain;
  return true;
}

// exec ends all other threads of a process. A traced thread has not ended until its tracer has
// received the report, and until then PTRACE_SEIZE of the thread in exec blocks (ptrace(2),
// kernel/ptrace.c: cred_guard_mutex). So a tracer that seizes one thread while it traces another
// could wait for itself.
bool Stopper::traces(Session& session) const {
  return std::ranges::any_of(asked_, [&](const Asked& asked) { return &asked.watch->session == &session; }) ||
         tracer_.has_pending_of(session.target().process().pid());
}

void Stopper::ask(const std::shared_ptr<Watch>& watch, const Thread::Schedule& before, std::int64_t number,
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

Found* Stopper::open_look(const std::shared_ptr<Watch>& watch, std::int64_t number,
                          std::shared_ptr<const StackReader::Prediction>& predicted) {
  Found* const found = open_found(watch, number);
  if (found == nullptr || !watch->session.sampler().reader().lock_soon()) return nullptr;
  static const auto none = std::make_shared<const StackReader::Prediction>();
  predicted = none;
  if (watch->prediction_lock.try_lock()) {
    predicted = watch->prediction;
    watch->prediction_lock.unlock();
  }
  return found;
}

// The thread has no CPU until this stopper sleeps, unless another CPU picks it up.
void Stopper::look_at_met(std::int64_t number) {
  const std::shared_ptr<Watch>& watch = met_.watch;
  account(*watch, number, nullptr, false);
  if (looks_in_vain(*watch, number)) return;
  std::shared_ptr<const StackReader::Prediction> predicted;
  Found* const found = open_look(watch, number, predicted);
  if (found == nullptr) {
    ++watch->late;  // the main thread does not keep up
    return;
  }
  Sampler& sampler = watch->session.sampler();
  found->loss = sampler.read_without_stop(*watch->switches, met_.lost, *predicted, found->look);
  sampler.reader().unlock();
  note_kernel(watch->thread->tid(), found->look.kernel);
  found->kind = found->loss == Loss::none ? Found::Kind::look : Found::Kind::loss;
  found->stopped_ns = found->look.stopped_ns;
  all_.add_stop(watch->thread->tid(), found->stopped_ns);
  put();
}

void Stopper::note_kernel(pid_t tid, KernelChain& chain) const {
  if (kernel_log_ != nullptr) kernel_log_->at(due_, tid, chain);
}

// The thread is stopped, or cannot be stopped.
void Stopper::arrived(Asked asked) {
  Watch& watch = *asked.watch;
  if (!watch.request.begin_look()) {  // its session is being dropped
    asked.stop->resume();
    return watch.request.end();
  }
  read(asked);
  watch.request.end();  // afterwards its session may be dropped, once what was put is taken
}

void Stopper::read(const Asked& asked) {
  Watch& watch = *asked.watch;
  std::shared_ptr<const StackReader::Prediction> predicted;
  Found* const found = open_look(asked.watch, asked.number, predicted);
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
  found->kind = found->loss == Loss::none ? Found::Kind::look : Found::Kind::loss;
  if (found->look.stopped_ns != 0) count_stop(asked, *found);
  put();
}

// Determines how long the thread was stopped, and whether it is still where it executed at the
// tick.
void Stopper::count_stop(const Asked& asked, Found& found) {
  Watch& watch = *asked.watch;
  const Sampler::Look& look = found.look;
  const std::int64_t runs = static_cast<std::int64_t>(look.schedule.runs - asked.before.runs),
                     waited = look.schedule.waited_for_cpu - asked.before.waited_for_cpu;
  constexpr std::int64_t tolerated = 20'000;  // ns
  // When the stopper leaves the CPU, another thread may get it first: luaspy did not cause that
  // wait.
  const std::int64_t taken = std::max<std::int64_t>(waited - to_ns(asked.stop->requested() - asked.woke) - tolerated,
                                                    0);
  found.stopped_ns = std::max(look.stopped_ns - taken, look.held_ns);
  watch.schedule = look.schedule;
  watch.schedule_at = look.seen;
  if (asked.before.runs != 0 && runs == 0 && !asked.remote) {
    // It continued on its CPU without losing it, so the interrupt came from another CPU.
    found.kind = Found::Kind::loss;
    found.loss = Loss::elsewhere;
  } else if (waited > to_ns(look.seen - asked.woke) + tolerated) {
    found.stopped_ns = look.held_ns;  // it was already waiting when the tick came
    found.kind = all_.idle_ ? Found::Kind::waiting : Found::Kind::loss;
    found.loss = Loss::none;  // only the time that it was stopped counts
    if (!all_.idle_) ++watch.waited;
  }
  all_.add_stop(watch.thread->tid(), found.stopped_ns);
}

// Accounts for the thread's ticks since its last one that no stopper has handled, and for this one.
// `now`: null if the schedule has not been read.
void Stopper::account(Watch& watch, std::int64_t number, const Thread::Schedule* now, bool slept) {
  const std::int64_t skipped = all_.skipped_;
  Thread::Schedule asked;
  const auto ask_now = [&] {
    if (now == nullptr) asked = watch.thread->schedule(), now = &asked;
  };
  if (watch.tick == -1) {
    watch.tick = number - 1;
    watch.skipped_seen = skipped;
    watch.at = std::max(watch.at, woke_ - all_.grid_.interval());
    ask_now();
    watch.schedule = *now;
    watch.schedule_at = woke_;
  }
  passed_ns_ = to_ns(woke_ - watch.at);
  const std::int64_t missed = std::max<std::int64_t>(number - watch.tick - 1 - (skipped - watch.skipped_seen), 0);
  if (missed != 0) {
    // It counts as executing at the share of them that it was on a CPU.
    ask_now();
    const std::int64_t since = to_ns(woke_ - watch.schedule_at),
                       ran = std::clamp<std::int64_t>(now->on_cpu - watch.schedule.on_cpu, 0, since);
    const std::int64_t executed = now->runs == 0 || since == 0 ? missed : (missed * ran + since / 2) / since;
    (watch.moved ? watch.elsewhere : watch.late) += executed;
    (watch.slept ? watch.idle : watch.waited) += missed - executed;
  }
  if (now != nullptr) watch.schedule = *now, watch.schedule_at = woke_;
  watch.moved = false;
  watch.skipped_seen = skipped;
  watch.tick = number;
  watch.at = woke_;
  watch.slept = slept;
}

Found* Stopper::open_found(const std::shared_ptr<Watch>& watch, std::int64_t number) {
  if (put_ - taken_.load(std::memory_order_acquire) == ring_size) return nullptr;
  std::unique_ptr<Found>& place = ring_[put_ % ring_size];
  const Memory& memory = watch->session.target().memory();
  if (place == nullptr || place->watch == nullptr || place->watch->program != watch->program)
    place = std::make_unique<Found>(memory);
  place->watch = watch;
  place->number = number;
  place->at = woke_;
  place->passed_ns = passed_ns_;
  place->kind = Found::Kind::loss;
  place->loss = Loss::none;
  place->stopped_ns = 0;
  place->remote = false;
  return place.get();
}

}  // namespace luaspy
