#include "attach/held_thread.h"

namespace luaspy {

// The run count is read first, so it can only be stale, never too new.
HeldThread::HeldThread(Target& target, std::shared_ptr<Thread> thread)
    : thread_(std::move(thread)), run_count_(thread_->run_count()), state_(thread_->state()) {
  if (state_.kind == ThreadState::Kind::running) stop_ = std::make_unique<Stop>(target, thread_->tid());
}

bool HeldThread::stands_still() const {
  return stop_ != nullptr ? stop_->outcome() == Stop::Outcome::stopped : sleeps();
}

Registers HeldThread::registers() const {
  if (stop_ != nullptr) return stop_->registers();
  Registers registers;
  registers.set_pc(state_.pc);
  registers.set_sp(state_.sp);
  return registers;
}

bool HeldThread::has_not_run() const {
  return stop_ != nullptr || (thread_->state() == state_ && thread_->run_count() == run_count_);
}

}  // namespace luaspy
