#include "attach/target.h"

#include <algorithm>

namespace luaspy {

void Target::let_go_pending() {
  for (const pid_t tid : std::vector(pending_)) {
    Stop stop(*this, tid);
  }
}

Target::Stop::Stop(Target& target, pid_t tid) : target_(target), tid_(tid), requested_(system::Clock::now()) {
  const bool was_pending = std::erase(target.pending_, tid) != 0;
  if (was_pending) outcome_ = wait(false);
  // What was pending may be gone, and its number be that of a thread which nobody traces: after exec the leader's is.
  const bool anew = !was_pending || (outcome_ == Outcome::pending && system::interrupt(tid));
  if (anew) {
    if (!begin()) return;
    outcome_ = wait(true);
  }
  if (outcome_ == Outcome::ended) follow_exec();
  if (outcome_ == Outcome::pending) target.pending_.push_back(tid_);
  if (outcome_ != Outcome::stopped) return;
  target.held_.push_back(tid_);
  if (tid_ != tid || system::read_registers(tid_, registers_)) {
    resume();
    outcome_ = Outcome::ended;
  }
}

bool Target::Stop::begin() {
  if (const system::Failure failure = system::seize(tid_)) {
    outcome_ = failure.no_such_process() ? Outcome::ended : Outcome::refused;
    return false;
  }
  // Fails only if the thread is gone; the wait then says how it ended.
  (void)system::interrupt(tid_);
  return true;
}

// A thread that was in exec when it was interrupted has become the leader, and stands still under that number (ptrace, section 2: "execve(2) under ptrace").
// It is another program by now.
void Target::Stop::follow_exec() {
  const pid_t leader = target_.process_.pid();
  if (tid_ == leader || std::ranges::find(target_.held_, leader) != target_.held_.end() || system::interrupt(leader)) return;
  tid_ = leader;
  outcome_ = wait(true);
}

// The wait blocks: that is the fastest way to see the stop, above all when luaspy shares the thread's CPU. The alarm that
// the sampler keeps running (see Sampler) ends it for a thread that does not come.
Target::Stop::Outcome Target::Stop::wait(bool block) {
  for (;;) {
    const system::WaitStatus status = system::wait_for(tid_, block);
    switch (status.kind) {
      case system::WaitStatus::Kind::stopped:
        signal_ = status.signal;
        return Outcome::stopped;
      case system::WaitStatus::Kind::ended:
        if (tid_ == target_.process_.pid()) target_.exit_status_ = status.exit_status;
        return Outcome::ended;
      case system::WaitStatus::Kind::none:
        return Outcome::pending;
      case system::WaitStatus::Kind::interrupted:
        if (!target_.held_.empty() || system::Clock::now() - requested_ > target_.patience_) return Outcome::pending;
    }
  }
}

std::chrono::nanoseconds Target::Stop::resume() {
  if (outcome_ != Outcome::stopped) return stood_still_;
  // It fails if the thread was killed where it stood. Its end has to be heard then: until it is, exec by another thread does not go on, and
  // the target's parent is not told of its end.
  const bool killed = static_cast<bool>(system::detach(tid_, signal_));
  outcome_ = Outcome::ended;
  stood_still_ = system::Clock::now() - requested_;
  std::erase(target_.held_, tid_);
  if (killed) target_.pending_.push_back(tid_);
  return stood_still_;
}

}  // namespace luaspy
