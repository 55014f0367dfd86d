#include "sampling/cpu_looks.h"

#include <algorithm>
#include <utility>

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

// A thread that was in the kernel at the tick, and has fallen asleep since, has executed then.
void CpuLooks::read_asleep(const std::shared_ptr<TrackedThread>& thread, const Thread::Schedule& now,
                           const TickMoment& moment) {
  const auto account = [&](bool slept) {
    thread->ticks.account(moment, host_.options().grid.interval(), *thread->thread, &now, slept, thread->unseen);
  };
  KernelChain kernel;
  read_kernel_chain(thread->thread->tid(), moment, kernel);
  if (!host_.options().idle && kernel.empty()) {
    ++thread->unseen.idle;
    return account(true);
  }
  const ThreadState state = thread->thread->state();
  account(state.kind == ThreadState::Kind::sleeping && kernel.empty());
  TickResult* const found = results_.open(thread);
  if (found == nullptr) {
    ++thread->unseen.late;
    return;
  }
  found->loss = Loss::moved;
  if (state.kind == ThreadState::Kind::sleeping && thread->process.begin_look()) {
    found->loss = thread->process.read_asleep(*thread->thread, state, *thread->predicted.get(), found->look);
    thread->process.end_look();
    found->look.kernel = kernel;
    if (found->loss == Loss::none) found->kind = TickResult::Kind::look;
  }
  if (found->loss != Loss::none) thread->ticks.read_again();
  results_.put();
}

// exec ends all other threads of a process. A traced thread has not ended until its tracer has
// received the report, and until then PTRACE_SEIZE of the thread in exec blocks (ptrace(2),
// kernel/ptrace.c: cred_guard_mutex). So a tracer that seizes one thread while it traces another
// could wait for itself.
bool CpuLooks::traces(const SampledProcess& process) const {
  return std::ranges::any_of(asked_, [&](const Asked& asked) { return &asked.thread->process == &process; }) ||
         tracer_.has_pending_of(process.pid());
}

void CpuLooks::stop(const std::shared_ptr<TrackedThread>& thread, const Thread::Schedule& before,
                    const TickMoment& moment, bool remote) {
  if (traces(thread->process)) {
    ++thread->unseen.not_stopped;
    return;
  }
  Asked asked{thread, thread->process.ask_to_stop(tracer_, thread->thread->tid()),
              before, thread->ticks.passed_ns(),
              moment, remote,
              {}};
  read_kernel_chain(thread->thread->tid(), moment, asked.kernel);
  if (asked.stop->outcome() != Stop::Outcome::pending) return look(std::move(asked));
  thread->request.ask(cpu_);
  asked_.push_back(std::move(asked));
}

void CpuLooks::handle(pid_t tid, const system::WaitStatus& status) {
  const auto found = std::ranges::find_if(asked_, [&](const Asked& each) { return each.stop->tid() == tid; });
  if (found == asked_.end()) {
    if (status.kind == system::WaitStatus::Kind::ended) tracer_.forget(tid);
    else if (status.kind == system::WaitStatus::Kind::stopped) (void)system::detach(tid, status.signal);
    return;
  }
  Asked asked = std::move(*found);
  asked_.erase(found);
  asked.stop->handle(status);
  look(std::move(asked));
}

bool CpuLooks::adopt_unreported(TrackedThread& thread, const TickMoment& moment) {
  constexpr Clock::duration overdue = 1s;
  const auto found = std::ranges::find_if(asked_, [&](const Asked& each) { return each.thread.get() == &thread; });
  if (found == asked_.end() || moment.woke - found->moment.woke <= overdue || !found->stop->adopt_unreported())
    return false;
  Asked asked = std::move(*found);
  asked_.erase(found);
  look(std::move(asked));
  return true;
}

void CpuLooks::give_up() {
  for (const Asked& asked : asked_) asked.thread->request.end();
  asked_.clear();
}

void CpuLooks::forget_all() {
  give_up();
  tracer_.forget_all();  // otherwise the next wait would return at once, and a real-time thread would spin
}

// A place for the result of a look; nullptr if there is no room, or the reader is in use by another thread.
TickResult* CpuLooks::open(const std::shared_ptr<TrackedThread>& thread) {
  TickResult* const found = results_.open(thread);
  return found != nullptr && thread->process.begin_look() ? found : nullptr;
}

// The thread has no CPU until this CPU sampler sleeps, unless another CPU picks it up.
void CpuLooks::read_without_stop(const std::shared_ptr<TrackedThread>& thread, const SwitchLog::Switch& lost,
                                 const TickMoment& moment) {
  TickResult* const found = open(thread);
  if (found == nullptr) {
    ++thread->unseen.late;  // the main thread does not keep up
    return;
  }
  found->loss = thread->process.read_without_stop(*thread->switches, lost, *thread->predicted.get_soon(), found->look);
  thread->process.end_look();
  found->look.tid = thread->thread->tid();
  read_kernel_chain(found->look.tid, moment, found->look.kernel);
  found->kind = found->loss == Loss::none ? TickResult::Kind::look : TickResult::Kind::loss;
  found->stopped_ns = found->look.stopped_ns;
  host_.add_stop(thread->thread->tid(), found->stopped_ns);
  results_.put();
}

void CpuLooks::read_kernel_chain(pid_t tid, const TickMoment& moment, KernelChain& chain) const {
  if (kernel_ != nullptr) kernel_->at(moment.due, tid, chain);
}

// The thread is stopped, or cannot be stopped.
void CpuLooks::look(Asked asked) {
  StopRequest& request = asked.thread->request;
  if (request.begin_look()) read(asked);
  else asked.stop->resume();  // its session is being dropped
  request.end();              // afterwards it may be dropped, once what was put is taken
}

void CpuLooks::read(const Asked& asked) {
  TrackedThread& thread = *asked.thread;
  TickResult* const found = open(asked.thread);
  if (found == nullptr) {
    host_.add_stop(thread.thread->tid(), asked.stop->resume().count());
    ++thread.unseen.late;  // the main thread does not keep up
    return;
  }
  found->number = asked.moment.number;
  found->at = asked.moment.woke;
  found->passed_ns = asked.passed_ns;
  found->remote = asked.remote;
  found->loss = thread.process.read_stopped(*asked.stop, *thread.thread, *thread.predicted.get_soon(), found->look);
  found->look.kernel = asked.kernel;
  found->look.tid = thread.thread->tid();
  thread.process.end_look();
  found->kind = found->loss == Loss::none ? TickResult::Kind::look : TickResult::Kind::loss;
  if (found->look.stopped_ns != 0) count_stop(asked, *found);
  results_.put();
}

// Determines how long the thread was stopped, and whether it is still where it executed at the
// tick.
void CpuLooks::count_stop(const Asked& asked, TickResult& found) {
  TrackedThread& thread = *asked.thread;
  const Sampler::Look& look = found.look;
  const std::int64_t runs = static_cast<std::int64_t>(look.schedule.runs - asked.before.runs),
                     waited = look.schedule.waited_for_cpu - asked.before.waited_for_cpu;
  constexpr std::int64_t tolerated = 20'000;  // ns
  // When the CPU sampler leaves the CPU, another thread may get it first: luaspy did not cause that
  // wait.
  const Clock::time_point woke = asked.moment.woke;
  const std::int64_t taken = std::max<std::int64_t>(waited - to_ns(asked.stop->requested() - woke) - tolerated, 0);
  found.stopped_ns = std::max(look.stopped_ns - taken, look.held_ns);
  thread.ticks.record(look.schedule, look.seen);
  if (asked.before.runs != 0 && runs == 0 && !asked.remote) {
    // It continued on its CPU without losing it, so the interrupt came from another CPU.
    found.kind = TickResult::Kind::loss;
    found.loss = Loss::elsewhere;
  } else if (waited > to_ns(look.seen - woke) + tolerated) {
    found.stopped_ns = look.held_ns;  // it was already waiting when the tick came
    const bool idle = host_.options().idle;
    found.kind = idle ? TickResult::Kind::waiting : TickResult::Kind::loss;
    found.loss = Loss::none;  // only the time that it was stopped counts
    if (!idle) ++thread.unseen.waited;
  }
  host_.add_stop(thread.thread->tid(), found.stopped_ns);
}

}  // namespace luaspy
