#include "attach/target.h"

#include <algorithm>

#include "system/calls.h"

namespace luaspy {

void Tracer::let_go_pending() {
  for (const Pending& pending : std::vector(pending_)) {
    Stop stop(*this, pending.process, pending.tid);
  }
}

void Tracer::forget(pid_t tid) {
  std::erase_if(pending_, [&](const Pending& pending) { return pending.tid == tid; });
}

bool Tracer::has_pending(pid_t tid) const { return std::ranges::find(pending_, tid, &Pending::tid) != pending_.end(); }

bool Tracer::has_pending_of(pid_t process) const {
  return std::ranges::any_of(pending_, [&](const Pending& pending) { return pending.process->pid == process; });
}

Stop::Stop(Target& target, pid_t tid) : Stop(target.tracer(), target, tid) {}

Stop::Stop(Tracer& tracer, Target& target, pid_t tid) : Stop(tracer, target.traced_, tid) {}

Stop::Stop(Tracer& tracer, std::shared_ptr<TracedProcess> process, pid_t tid)
    : tracer_(tracer), process_(std::move(process)), tid_(tid), requested_(system::Clock::now()) {
  const bool was_pending = std::erase_if(tracer.pending_,
                                         [&](const Tracer::Pending& pending) { return pending.tid == tid; }) != 0;
  if (was_pending) outcome_ = wait(false);
  // A pending thread may be gone, and its number may now belong to a thread that nobody traces:
  // after exec, this is so for the leader's number.
  const bool anew = !was_pending || (outcome_ == Outcome::pending && system::interrupt(tid));
  if (anew) {
    if (!begin()) return;
    outcome_ = wait(true);
  }
  conclude(tid);
  if (outcome_ == Outcome::pending) tracer.pending_.push_back({process_, tid_});
}

Stop::Stop(Tracer& tracer, Target& target, pid_t tid, Later)
    : tracer_(tracer), process_(target.traced_), tid_(tid), requested_(system::Clock::now()) {
  if (begin()) outcome_ = Outcome::pending;
}

Stop::Stop(Tracer& tracer, Target& target, pid_t tid, AtSignal at)
    : tracer_(tracer), process_(target.traced_), tid_(tid), own_signal_(at.signal), requested_(system::Clock::now()) {
  if (seize()) outcome_ = Outcome::pending;
}

void Stop::handle(const system::WaitStatus& status) {
  const pid_t asked = tid_;
  outcome_ = outcome_of(status);
  conclude(asked);
  if (outcome_ == Outcome::pending)
    outcome_ = Outcome::ended;  // an exec that did not finish in time: it is another program by now
}

// The kernel shows a thread's registers only to its tracer, and only while the thread is stopped.
bool Stop::adopt_unreported() {
  if (outcome_ != Outcome::pending || system::read_registers(tid_, registers_)) return false;
  outcome_ = Outcome::stopped;
  conclude(tid_);
  return true;
}

// The thread is stopped or has ended.
void Stop::conclude(pid_t asked) {
  if (outcome_ == Outcome::ended) follow_exec();
  if (outcome_ != Outcome::stopped) return;
  tracer_.held_.push_back(tid_);
  if (tid_ != asked || system::read_registers(tid_, registers_, &at_system_call_)) {
    resume();
    outcome_ = Outcome::ended;
  }
}

bool Stop::seize() {
  const system::Failure failure = system::seize(tid_);
  if (failure) outcome_ = failure.no_such_process() ? Outcome::ended : Outcome::refused;
  return !failure;
}

bool Stop::begin() {
  if (!seize()) return false;
  // Fails only if the thread is gone; the wait then says how it ended.
  (void)system::interrupt(tid_);
  return true;
}

// A thread that was in exec when it was interrupted has become the leader, and is stopped under the
// leader's number (ptrace, section 2: "execve(2) under ptrace"). It is another program by now.
void Stop::follow_exec() {
  if (own_signal_ != 0) return;  // it was not interrupted
  const pid_t leader = process_->pid;
  if (tid_ == leader || std::ranges::find(tracer_.held_, leader) != tracer_.held_.end() || system::interrupt(leader))
    return;
  tid_ = leader;
  outcome_ = wait(true);
}

// The wait blocks: that is the fastest way to notice the stop, especially when luaspy shares the
// thread's CPU.
Stop::Outcome Stop::wait(bool block) {
  if (block) tracer_.waits_since_ = requested_.time_since_epoch().count();
  for (;;) {
    const system::WaitStatus status = system::wait_for(tid_, block);
    if (status.kind == system::WaitStatus::Kind::interrupted && tracer_.held_.empty() &&
        system::Clock::now() - requested_ <= tracer_.patience_)
      continue;
    tracer_.waits_since_ = 0;
    return outcome_of(status);
  }
}

Stop::Outcome Stop::outcome_of(const system::WaitStatus& status) {
  switch (status.kind) {
    case system::WaitStatus::Kind::stopped:
      by_own_signal_ = own_signal_ != 0 && (status.signal == own_signal_ ? system::is_from_file(tid_) : is_own_trap());
      signal_ = by_own_signal_ ? 0 : status.signal;
      stays_stopped_ = status.stays_stopped;
      return Outcome::stopped;
    case system::WaitStatus::Kind::ended:
      if (tid_ == process_->pid) process_->exit_status = status.exit_status.value_or(-1);
      return Outcome::ended;
    case system::WaitStatus::Kind::none:
    case system::WaitStatus::Kind::interrupted:
      break;
  }
  return Outcome::pending;
}

bool Stop::is_own_trap() const { return own_trap_ != 0 && system::trapped_at(tid_) == own_trap_; }

// PTRACE_CONT would let a thread run that is stopped with its process (ptrace(2), "Group-stop").
bool Stop::go_on() {
  if (outcome_ != Outcome::stopped || stays_stopped_ || signal_ != 0 || system::resume(tid_)) return false;
  std::erase(tracer_.held_, tid_);
  outcome_ = Outcome::pending;
  return true;
}

std::chrono::nanoseconds Stop::resume() {
  if (outcome_ != Outcome::stopped) return stood_still_;
  // This fails if the thread was killed while it was stopped. luaspy must then wait for its end:
  // until that is done, an exec by another thread does not proceed, and the target's parent does
  // not learn of its end.
  const bool killed = static_cast<bool>(system::detach(tid_, signal_));
  outcome_ = Outcome::ended;
  stood_still_ = system::Clock::now() - requested_;
  std::erase(tracer_.held_, tid_);
  if (killed) tracer_.pending_.push_back({process_, tid_});
  return stood_still_;
}

}  // namespace luaspy
