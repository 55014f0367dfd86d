#include "allocations/ptraced_threads.h"

#include "allocations/allocator.h"

namespace luaspy {

std::unique_ptr<TracedThread> PtracedThreads::trace(const Allocator& allocator, int signal) {
  return std::make_unique<PtracedThread>(tracer_, allocator.session->target(), allocator.thread->tid(), signal);
}

system::WaitStatus PtracedThreads::wait(pid_t& tid, system::Clock::time_point until) {
  constexpr std::chrono::milliseconds again{1};
  alarm_.set(until, again);
  const system::WaitStatus status = system::wait_for_any(tid);
  alarm_.clear();
  return status;
}

}  // namespace luaspy
