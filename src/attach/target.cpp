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
  if (!was_pending) {
    if (const system::Failure failure = system::seize(tid)) {
      outcome_ = failure.no_such_process() ? Outcome::ended : Outcome::refused;
      return;
    }
    // Fails only if the thread is gone; the wait then says how it ended.
    (void)system::interrupt(tid);
  }
  outcome_ = wait(!was_pending);
  if (outcome_ == Outcome::pending) target.pending_.push_back(tid);
  if (outcome_ == Outcome::stopped && system::read_registers(tid, registers_)) {
    resume();
    outcome_ = Outcome::ended;
  }
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
        if (system::Clock::now() - requested_ > target_.patience_) return Outcome::pending;
    }
  }
}

std::chrono::nanoseconds Target::Stop::resume() {
  if (outcome_ != Outcome::stopped) return stood_still_;
  (void)system::detach(tid_, signal_);
  outcome_ = Outcome::ended;
  stood_still_ = system::Clock::now() - requested_;
  return stood_still_;
}

}  // namespace luaspy
