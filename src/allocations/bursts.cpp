#include "allocations/bursts.h"

#include <algorithm>
#include <span>
#include <vector>

#include "allocations/heap_now.h"
#include "attach/refusal.h"

namespace luaspy {
namespace {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

constexpr std::chrono::microseconds most_patience{5000};

}  // namespace

void Bursts::sleep_until(Clock::time_point until) { listen(until, nullptr, Arrival::awaited); }

void Bursts::listen(Clock::time_point until, const Allocator* until_it_ends, Arrival how) {
  while (threads_.now() < until && (until_it_ends == nullptr || is_armed(*until_it_ends))) {
    if (traced_.empty()) {
      threads_.sleep_until(until);
      return;
    }
    pid_t tid = 0;
    const system::WaitStatus status = threads_.wait(tid, until);
    handle(tid, status, how);
  }
}

// Unless its burst has come to its end, the thread goes on, with its signal.
void Bursts::handle(pid_t tid, const system::WaitStatus& status, Arrival how) {
  if (status.kind == system::WaitStatus::Kind::ended && tid <= 0) traced_.clear();  // nothing is traced any more
  if (status.kind == system::WaitStatus::Kind::interrupted) return;
  const auto traced = traced_.find(tid);
  if (traced == traced_.end()) {
    // A thread has its process's number from exec on, and stays traced.
    if (status.kind == system::WaitStatus::Kind::stopped) threads_.detach(tid, status.signal);
    return;
  }
  std::unique_ptr<TracedThread> stop = std::move(traced->second);
  traced_.erase(traced);
  stop->handle(status);
  stops_[tid] += stop->outcome() == Stop::Outcome::stopped;
  if (Allocator* const allocator = armed_in(tid)) arrived(*allocator, std::move(stop), how);
}

// There is one at most.
Allocator* Bursts::armed_in(pid_t tid) {
  for (const auto& allocator : loop_.allocators()) {
    if (is_armed(*allocator) && allocator->thread->tid() == tid) return allocator.get();
  }
  return nullptr;
}

// Everything that a burst needs, so that it can begin at once. While a burst of another Lua is armed in the
// thread, that needs the trap.
bool Bursts::prepare(Allocator& allocator) {
  const Memory& memory = allocator.memory;
  const pid_t tid = allocator.thread->tid();
  if (allocator.function == 0) allocator.function = allocator.lua.allocation_function(memory, allocator.G);
  if (allocator.function == 0) {  // not readable: the Lua is being closed
    sink_.add_loss(Loss::unreadable);
    allocator.gone = true;
    return false;
  }
  if (armed_in(tid) != nullptr) return true;
  Trap& trap = state_.traps[tid];
  if (trap.calls == nullptr || trap.function != allocator.function) {
    trap.calls = nullptr;  // its debug registers are needed
    Result<std::unique_ptr<CallTrap>> opened = threads_.open_trap(tid, allocator.function);
    if (!opened) return refuse(allocator, opened.error());
    trap = {std::move(*opened), allocator.function, 0};
  }
  if (allocator.next_number == 0) allocator.next_number = draw(allocator);
  set_number(trap, allocator.next_number);
  if (allocator.objects == nullptr) allocator.objects = allocator.lua.heap_reader(memory, allocator.G);
  return trace(allocator, trap);
}

// The burst of a Lua that was seen by what its heap had grown by begins with what it allocates next time, so its
// last call has to be spread over all that it allocates at a time.
std::int64_t Bursts::draw(const Allocator& allocator) {
  if (!allocator.seen_by_growth) return state_.pace.draw();
  return state_.pace.draw(allocator.runs.usual() / allocator.usual.mean_or(BurstSums::small));
}

void Bursts::set_number(Trap& trap, std::int64_t number) {
  if (std::exchange(trap.number, number) != number) trap.calls->set_number(number);
}

// From now on, the thread is traced.
bool Bursts::trace(Allocator& allocator, const Trap& trap) {
  const pid_t tid = allocator.thread->tid();
  std::unique_ptr<TracedThread>& stop = traced_[tid];
  if (stop == nullptr) state_.reaper.watch(tid, allocator.pid);
  if (stop == nullptr) stop = threads_.trace(allocator, trap.calls->signal());
  if (stop->outcome() == Stop::Outcome::pending) {
    stop->expect_trap(allocator.function);
    state_.refused_threads.erase(tid);
    return true;
  }
  const bool refused = stop->outcome() == Stop::Outcome::refused;
  traced_.erase(tid);
  sink_.add_loss(refused ? Loss::refused : Loss::ended);
  return refuse(allocator,
                refused ? explain_no_stop(allocator.pid) : Error{Cause::target_ended, "The thread has ended."});
}

bool Bursts::let_go(const Thread& thread) {
  if (thread.state().kind != ThreadState::Kind::running) return true;
  return threads_.interrupt(thread.tid()) && arrival(thread.tid(), threads_.now() + most_patience) != nullptr;
}

void Bursts::record_refusal(pid_t tid, const Error& why) {
  if (!counts_.refused) state_.refused_at = threads_.now();
  counts_.refused = why;
  state_.refused_threads.insert(tid);
}

// Another thread may run it by now: the next search tells.
bool Bursts::refuse(Allocator& allocator, const Error& why) {
  if (why.cause != Cause::target_ended) record_refusal(allocator.thread->tid(), why);
  allocator.gone = true;
  return false;
}

// What gave no sample is kept for the next burst. Most bursts end within one or two ms. While its calls come, nothing
// else is done: a burst that is interrupted goes on at any time, and so most often at the program's next pause.
void Bursts::start(Allocator& allocator, double bytes) {
  constexpr Clock::duration most = 50ms;
  bytes += std::exchange(allocator.kept_bytes, 0);
  if (!begin(allocator, bytes)) {
    allocator.kept_bytes = bytes;
    return;
  }
  const Clock::time_point last = threads_.now() + most;
  Clock::time_point end = threads_.now() + most_patience;
  std::size_t trapped = 0;
  while (is_armed(allocator) && threads_.now() < std::min(end, last) && !loop_.is_over()) {
    listen(std::min(end, threads_.now() + 1ms), &allocator, Arrival::awaited);
    if (!is_armed(allocator)) return;
    const std::size_t now_trapped = allocator.burst.calls.size() +
                                    state_.traps[allocator.thread->tid()].calls->calls().size();
    if (std::exchange(trapped, now_trapped) != now_trapped) end = threads_.now() + most_patience;
  }
}

// The trap is armed while the thread stands still. That takes tens of µs while it runs, and the calls
// that it makes meanwhile would be seen less often: the first ones after a pause. But a stop could end
// a system call with EINTR, so a thread that sleeps now and then runs on.
bool Bursts::begin(Allocator& allocator, double bytes) {
  if (!make_room(allocator) || !prepare(allocator)) return false;
  allocator.burst.begin(bytes, std::exchange(allocator.next_number, 0));
  const Clock::time_point held = threads_.now();
  std::unique_ptr<TracedThread> stop = allocator.may_sleep ? nullptr : hold(allocator);
  const bool stands_still = stop != nullptr;
  if ((allocator.may_sleep || stands_still) && arm(allocator, std::move(stop))) {
    if (stands_still) allocator.burst.took_ns += to_ns(allocator.burst.armed - held);
    return true;
  }
  allocator.burst.is_open = false;
  return false;
}

// Another Lua of the thread has the trap: it gives that away if it makes no calls. Nothing is lost by that:
// its burst goes on afterwards.
bool Bursts::make_room(Allocator& allocator) {
  constexpr Clock::duration patience = 20ms;
  const pid_t tid = allocator.thread->tid();
  Allocator* const other = armed_in(tid);
  if (other == nullptr || other == &allocator) return true;
  const std::vector<CallTrap::Call>& calls = state_.traps[tid].calls->calls();
  if (threads_.now() - (calls.empty() ? other->burst.armed : calls.back().at) < patience) return false;
  disarm(*other);
  drain_late_signals();
  return true;
}

void Bursts::interrupt() {
  bool any = false;
  for (const auto& allocator : loop_.allocators()) {
    if (!is_armed(*allocator)) continue;
    disarm(*allocator);
    any = true;
  }
  if (any) drain_late_signals();
}

void Bursts::go_on() {
  for (const auto& allocator : loop_.allocators()) {
    const OpenBurst& burst = allocator->burst;
    if (!burst.is_open || burst.is_armed || armed_in(allocator->thread->tid()) != nullptr) continue;
    if (!prepare(*allocator) || !arm(*allocator, nullptr)) give_up(*allocator);
  }
}

void Bursts::give_up(Allocator& allocator) {
  if (!allocator.burst.is_open) return;
  ++counts_.cut;
  const bool was_armed = allocator.burst.is_armed;
  if (was_armed) disarm(allocator);
  end(allocator, Outcome::lost);
  if (was_armed) drain_late_signals();
}

// Whatever changes the heap is a call of its allocation function (lmem.c, lj_gc.c). One may have begun before
// the trap was armed. More of them that are not trapped: the Lua runs in another thread, or has another
// function, by lua_setallocf or because it is another Lua at the same address.
bool Bursts::watch(Allocator& allocator) {
  constexpr int enough = 3;
  OpenBurst& burst = allocator.burst;
  if (!burst.is_armed) return true;
  const std::optional<std::int64_t> heap = heap_now(allocator.memory, allocator.lua, allocator.G);
  const std::optional<std::int64_t> before = std::exchange(burst.heap, heap);
  if (!heap || !before || *heap == *before) return true;
  if (state_.traps[allocator.thread->tid()].calls->has_calls() || ++burst.untrapped < enough) return true;
  allocator.function = 0;
  give_up(allocator);
  return false;
}

// A trap was disarmed while its thread ran, which may have come to it right before: what it gets for that
// is luaspy's own (Stop::expect_trap), as long as luaspy traces it.
void Bursts::drain_late_signals() { listen(threads_.now() + 1ms, nullptr, Arrival::by_the_way); }

// `stop`: of the thread, which goes on; nullptr: it runs.
bool Bursts::arm(Allocator& allocator, std::unique_ptr<TracedThread> stop) {
  OpenBurst& burst = allocator.burst;
  Trap& trap = state_.traps[allocator.thread->tid()];
  set_number(trap, std::max<std::int64_t>(burst.wanted - burst.sums.growing, 1));
  burst.stood_still = stop != nullptr;
  if (!release(allocator, trap, std::move(stop))) return false;
  burst.is_armed = true;
  burst.armed = threads_.now();
  burst.heap = {};
  burst.untrapped = 0;
  return true;
}

// The trap is armed, and the thread goes on.
bool Bursts::release(Allocator& allocator, Trap& trap, std::unique_ptr<TracedThread> stop) {
  if (!trap.calls->arm()) return false;
  if (stop == nullptr) return true;
  if (!stop->go_on()) {
    trap.calls->disarm();
    return false;
  }
  traced_[allocator.thread->tid()] = std::move(stop);
  return true;
}

// The thread may run, or stand still.
void Bursts::disarm(Allocator& allocator) {
  OpenBurst& burst = allocator.burst;
  CallTrap& trap = *state_.traps[allocator.thread->tid()].calls;
  trap.disarm();
  burst.is_armed = false;
  const std::vector<CallTrap::Call>& calls = trap.calls();
  burst.sums += sums_of(calls);
  burst.calls.insert(burst.calls.end(), calls.begin(), calls.end());
}

// Of the calls since the trap was armed last. The thread runs.
void Bursts::record_cost(OpenBurst& burst) {
  const auto calls = std::span(burst.calls).subspan(burst.costed);
  burst.costed = burst.calls.size();
  const std::optional<Clock::time_point> resumed = burst.stood_still ? std::optional(burst.armed) : std::nullopt;
  state_.trap_cost.add(resumed, calls);
  burst.took_ns += state_.trap_cost.of(resumed, calls);
}

// The thread stands still; nullptr: it has ended, or waits for something.
std::unique_ptr<TracedThread> Bursts::hold(Allocator& allocator) {
  const pid_t tid = allocator.thread->tid();
  if (!threads_.interrupt(tid)) return nullptr;
  std::unique_ptr<TracedThread> stop = arrival(tid, threads_.now() + most_patience);
  return stop != nullptr && stop->outcome() == Stop::Outcome::stopped ? std::move(stop) : nullptr;
}

// Of a traced thread that runs; nullptr: it did not stop until then.
std::unique_ptr<TracedThread> Bursts::arrival(pid_t tid, Clock::time_point end) {
  while (traced_.contains(tid)) {
    pid_t changed = 0;
    const system::WaitStatus status = threads_.wait(changed, end);
    if (status.kind == system::WaitStatus::Kind::interrupted) {
      if (threads_.now() >= end) return nullptr;
    } else if (changed != tid) {
      handle(changed, status, Arrival::by_the_way);
    } else {
      std::unique_ptr<TracedThread> stop = std::move(traced_[tid]);
      traced_.erase(tid);
      stop->handle(status);
      stops_[tid] += stop->outcome() == Stop::Outcome::stopped;
      return stop;
    }
  }
  return nullptr;
}

// The thread of an armed burst has stopped. The burst has so many calls that grow: where the thread stops
// before, it is trapped for those that are left. Otherwise what follows a sweep of the collector would be
// seen more often, or if bursts that end in one were dropped, less often. However long the program
// allocates nothing, its next calls belong to the burst: if they did not, the first ones after a pause
// would be seen less often.
void Bursts::arrived(Allocator& allocator, std::unique_ptr<TracedThread> stop, Arrival how) {
  constexpr std::size_t most_frees = 1000;
  OpenBurst& burst = allocator.burst;
  disarm(allocator);
  record_cost(burst);
  if (stop->outcome() != Stop::Outcome::stopped || stop->stays_stopped()) return give_up(allocator);
  Trap& trap = state_.traps[allocator.thread->tid()];
  if (!stop->by_own_signal()) {
    stop = nullptr;  // a signal of the program's own: it goes on with that
    if (!trace(allocator, trap) || !arm(allocator, nullptr)) give_up(allocator);
    return;
  }
  const Clock::time_point since = burst.calls.empty() ? threads_.now() : burst.calls.back().at;
  if (burst.sums.growing >= burst.wanted && how == Arrival::by_the_way)
    burst.wanted = burst.sums.growing + (state_.pace.draw() + 1) / 2;  // luaspy has no time for a sample
  if (burst.sums.growing >= burst.wanted) {
    ++counts_.bursts;
    end(allocator, sample(allocator, trap, std::move(stop)));
  } else if (burst.calls.size() >= static_cast<std::size_t>(burst.wanted) + most_frees) {
    ++counts_.bursts;
    ++counts_.frees;
    end(allocator, Outcome::lost);
  } else if (arm(allocator, std::move(stop))) {
    burst.took_ns += to_ns(burst.armed - since);
  } else {
    give_up(allocator);
  }
}

// The trap is not armed any more.
void Bursts::end(Allocator& allocator, Outcome outcome) {
  OpenBurst& burst = allocator.burst;
  record_cost(burst);
  burst.is_open = false;
  if (outcome == Outcome::lost) allocator.kept_bytes += burst.bytes;
  allocator.probed = threads_.now();
  if (const auto heap = heap_now(allocator.memory, allocator.lua, allocator.G))
    allocator.heap_bytes = outcome == Outcome::sampled ? burst.heap.value_or(*heap) : *heap;
  double grown = 0;
  for (const CallTrap::Call& call : burst.calls) grown += static_cast<double>(allocation_call(call.arguments).growth());
  loop_.pass(allocator, grown, static_cast<double>(burst.sums.bytes));
  if (burst.calls.empty() && burst.took_ns == 0) return;
  state_.pace.add(static_cast<std::int64_t>(burst.calls.size()), burst.sums.growing, burst.took_ns,
                  {period_of(burst.calls), state_.kinds.calls_between_pauses()});
}

}  // namespace luaspy
