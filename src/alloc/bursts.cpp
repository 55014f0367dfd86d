#include "alloc/bursts.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "attach/refusal.h"

namespace luaspy {
namespace {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds alarm_again{1};
constexpr std::chrono::microseconds most_patience{5000};

AllocationCall call_of(const Stop& stop) {
  std::array<std::uint64_t, 4> arguments;
  std::ranges::transform(own_machine().first_arguments, arguments.begin(),
                         [&](std::uint8_t number) { return stop.registers()[number]; });
  return allocation_call(arguments);
}

// What the thread had in its registers and on its stack when the function returned.
std::vector<Address> words_of(const StackReader::Look& read) {
  constexpr std::size_t most_bytes = 512;  // some frames
  std::vector<Address> words;
  for (const std::uint8_t number : own_machine().callee_saved) words.push_back(read.registers[number]);
  const std::span<const std::byte> stack = read.stack().bytes;
  for (std::size_t at = 0; at + sizeof(Address) <= std::min(stack.size(), most_bytes); at += sizeof(Address))
    words.push_back(load<Address>(stack, at));
  return words;
}

// Lua tells its allocation function the type of objects, from 5.2 on: nothing has to be read. But where a
// lua_State is in its block, the block's first bytes tell.
std::optional<BlockUse> told_use(const Block& block) {
  if (block.address == 0) return BlockUse{block.told_type};
  if (!block.told_type || *block.told_type == ObjectType::thread) return std::nullopt;
  return BlockUse{block.told_type, false, block.address};
}

}  // namespace

void Bursts::rest(Clock::time_point until) {
  while (Clock::now() < until) {
    if (traced_.empty()) {
      (void)system::sleep_until(until);
      return;
    }
    alarm_.set(until, alarm_again);
    pid_t tid = 0;
    const system::WaitStatus status = system::wait_for_any(tid);
    alarm_.clear();
    hear(tid, status);
  }
}

// A traced thread has stopped without a burst that waits for it: it goes on, with its signal.
void Bursts::hear(pid_t tid, const system::WaitStatus& status) {
  if (status.kind == system::WaitStatus::Kind::ended && tid <= 0) traced_.clear();  // nothing is traced any more
  if (status.kind == system::WaitStatus::Kind::interrupted) return;
  const auto stop = traced_.find(tid);
  if (stop == traced_.end()) {
    // A thread has its process's number from exec on, and stays traced.
    if (status.kind == system::WaitStatus::Kind::stopped) (void)system::detach(tid, status.signal);
    return;
  }
  stop->second->arrive(status);
  stops_[tid] += stop->second->outcome() == Stop::Outcome::stopped;
  traced_.erase(stop);
}

// Everything that a burst needs, so that it can begin at once.
bool Bursts::prepare(Allocator& allocator) {
  Target& target = allocator.session.target();
  const pid_t tid = allocator.thread->tid();
  if (allocator.function == 0) allocator.function = allocator.lua.allocation_function(target.memory(), allocator.G);
  if (allocator.function == 0) {  // not readable: the Lua is being closed
    sink_.add_loss(Loss::unreadable);
    allocator.gone = true;
    return false;
  }
  Trap& trap = state_.traps[{tid, allocator.function}];
  if (trap.calls == nullptr) {
    Result<std::unique_ptr<CallTrap>> opened = CallTrap::open(tid, allocator.function);
    if (!opened) return refuse(allocator, opened.error());
    trap.calls = std::move(*opened);
  }
  if (trap.number == 0) trap.calls->set_number(trap.number = state_.pace.draw());
  if (allocator.objects == nullptr) allocator.objects = allocator.lua.heap_reader(target.memory(), allocator.G);
  return trace(allocator, trap);
}

// From now on, the thread is traced.
bool Bursts::trace(Allocator& allocator, const Trap& trap) {
  Target& target = allocator.session.target();
  const pid_t tid = allocator.thread->tid();
  std::unique_ptr<Stop>& stop = traced_[tid];
  if (stop == nullptr) state_.reaper.watch(tid, target.process().pid());
  if (stop == nullptr) stop = std::make_unique<Stop>(tracer_, target, tid, Stop::AtSignal{trap.calls->signal()});
  if (stop->outcome() == Stop::Outcome::pending) {
    stop->expect_trap(allocator.function);
    state_.refused_threads.erase(tid);
    return true;
  }
  const bool refused = stop->outcome() == Stop::Outcome::refused;
  traced_.erase(tid);
  sink_.add_loss(refused ? Loss::refused : Loss::ended);
  return refuse(allocator, refused ? explain_no_stop(target.process().pid())
                                   : Error{Cause::target_ended, "The thread has ended."});
}

void Bursts::note_refusal(pid_t tid, const Error& why) {
  if (!counts_.refused) state_.refused_at = Clock::now();
  counts_.refused = why;
  state_.refused_threads.insert(tid);
}

// Another thread may run it by now: the next search tells.
bool Bursts::refuse(Allocator& allocator, const Error& why) {
  if (why.cause != Cause::target_ended) note_refusal(allocator.thread->tid(), why);
  allocator.gone = true;
  return false;
}

// What gave no sample is kept for the next burst.
void Bursts::take(Allocator& allocator, double bytes) {
  bytes += std::exchange(allocator.kept_bytes, 0);
  under_way_.begin();
  if (burst(allocator, bytes) != Outcome::sampled) allocator.kept_bytes = bytes;
  note_cost();
  if (under_way_.calls.empty() && under_way_.took_ns == 0) return;
  const auto trapped = static_cast<std::int64_t>(under_way_.calls.size());
  state_.pace.add(trapped, under_way_.sums.growing, under_way_.took_ns, period_of(under_way_.calls));
}

// The trap is armed while the thread stands still. That takes tens of µs while it runs, and the calls
// that it makes meanwhile would be seen less often: the first ones after a pause. But a stop could end
// a system call with EINTR, so a thread that sleeps now and then runs on.
//
// The burst has so many calls that grow: where the thread stops before, it is trapped for those that are
// left. Otherwise what follows a sweep of the collector would be seen more often, or if bursts that end
// in one were dropped, less often.
Bursts::Outcome Bursts::burst(Allocator& allocator, double bytes) {
  constexpr std::size_t most_frees = 1000;
  if (!prepare(allocator)) return Outcome::lost;
  Trap& trap = state_.traps[{allocator.thread->tid(), allocator.function}];
  const std::int64_t wanted = std::exchange(trap.number, 0);
  const Clock::time_point held = Clock::now();
  std::unique_ptr<Stop> stop = allocator.may_sleep ? nullptr : hold(allocator);
  if (!allocator.may_sleep && stop == nullptr) return Outcome::lost;
  std::optional<Clock::time_point> stood_still;
  if (stop != nullptr) stood_still = held;
  while (under_way_.calls.size() < static_cast<std::size_t>(wanted) + most_frees) {
    if (!arm(allocator, trap, std::move(stop))) return Outcome::lost;
    const Clock::time_point armed = Clock::now();
    note_cost();
    under_way_.armed = armed;
    if (stood_still) under_way_.took_ns += to_ns(armed - *stood_still);
    stop = wait(allocator, trap);
    trap.calls->disarm();
    note_trapped(*trap.calls);
    if (stop == nullptr || stop->outcome() != Stop::Outcome::stopped || !stop->by_own_signal()) {
      ++counts_.cut;
      take_late_signals();
      if (trap.calls->calls().empty()) allocator.function = 0;  // lua_setallocf: it may be another one
      return Outcome::lost;
    }
    stood_still = trap.calls->calls().empty() ? Clock::now() : trap.calls->calls().back().at;
    if (under_way_.sums.growing >= wanted) {
      ++counts_.bursts;
      return sample(allocator, trap, std::move(stop), armed, bytes);
    }
    trap.calls->set_number(wanted - under_way_.sums.growing);
  }
  ++counts_.bursts;
  ++counts_.frees;
  return Outcome::lost;
}

// A trap was disarmed while its thread ran, which may have come to it right before: what it gets for that
// is luaspy's own (Stop::expect_trap), as long as luaspy traces it.
void Bursts::take_late_signals() { rest(Clock::now() + 1ms); }

// `stop`: of the thread, which goes on; nullptr: it runs.
bool Bursts::arm(Allocator& allocator, Trap& trap, std::unique_ptr<Stop> stop) {
  if (!trap.calls->arm()) return false;
  if (stop == nullptr) return true;
  if (!stop->go_on()) {
    trap.calls->disarm();
    return false;
  }
  traced_[allocator.thread->tid()] = std::move(stop);
  return true;
}

// The thread may stand still.
void Bursts::note_trapped(CallTrap& trap) {
  const std::vector<CallTrap::Call>& calls = trap.calls();
  under_way_.sums += sums_of(calls);
  under_way_.calls.insert(under_way_.calls.end(), calls.begin(), calls.end());
}

// Of the calls since the trap was armed last. The thread runs.
void Bursts::note_cost() {
  const auto calls = std::span(under_way_.calls).subspan(under_way_.costed);
  under_way_.costed = under_way_.calls.size();
  state_.trap_cost.add(under_way_.armed, calls);
  under_way_.took_ns += state_.trap_cost.of(under_way_.armed, calls);
}

// The thread stands still; nullptr: it has ended, or waits for something.
std::unique_ptr<Stop> Bursts::hold(Allocator& allocator) {
  const pid_t tid = allocator.thread->tid();
  if (system::interrupt(tid)) return nullptr;
  std::unique_ptr<Stop> stop = arrival(tid, Clock::now() + most_patience);
  return stop != nullptr && stop->outcome() == Stop::Outcome::stopped ? std::move(stop) : nullptr;
}

// Of a traced thread that runs; nullptr: it did not stop until then. Others that a signal stops
// meanwhile go on.
std::unique_ptr<Stop> Bursts::arrival(pid_t tid, Clock::time_point end) {
  while (traced_.contains(tid)) {
    alarm_.set(end, alarm_again);
    pid_t changed = 0;
    const system::WaitStatus status = system::wait_for_any(changed);
    alarm_.clear();
    if (status.kind == system::WaitStatus::Kind::interrupted) {
      if (Clock::now() >= end) return nullptr;
    } else if (changed != tid) {
      hear(changed, status);
    } else {
      std::unique_ptr<Stop> stop = std::move(traced_[tid]);
      traced_.erase(tid);
      stop->arrive(status);
      stops_[tid] += stop->outcome() == Stop::Outcome::stopped;
      return stop;
    }
  }
  return nullptr;
}

// Until the thread stops; nullptr: it does not. However long the program allocates nothing: its next
// calls belong to the burst. If they did not, the first ones after a pause would be seen less often.
// But other threads that allocate are not seen meanwhile.
std::unique_ptr<Stop> Bursts::wait(Allocator& allocator, const Trap& trap) {
  constexpr std::chrono::milliseconds alone{1000}, others{20};
  const pid_t tid = allocator.thread->tid();
  const Clock::time_point armed = Clock::now();
  for (;;) {
    std::unique_ptr<Stop> stop = arrival(tid, Clock::now() + most_patience);
    if (stop != nullptr) {
      if (stop->outcome() != Stop::Outcome::stopped || stop->by_own_signal()) return stop;
      if (stop->stays_stopped()) return nullptr;
      stop = nullptr;  // a signal of the program's own: it goes on with that
      if (!trace(allocator, trap)) return nullptr;
    }
    if (loop_.is_over() || Clock::now() - armed > (loop_.is_alone() ? alone : others)) return nullptr;
  }
}

// The thread stands still where the call returns, with the block's address; if there is no trap for
// that, still at the function's first instruction. nullptr: it does not return soon.
std::unique_ptr<Stop> Bursts::await_return(Allocator& allocator, CallTrap& trap, std::unique_ptr<Stop> stop) {
  constexpr Clock::duration most = 50ms;  // it may lose its CPU meanwhile
  const pid_t tid = allocator.thread->tid();
  const Registers called = stop->registers();
  const ReturnPlace place = return_place(called, allocator.session.target().memory());
  if (place.pc == 0 || !trap.arm_return(place.pc)) return stop;
  stop->expect_trap(place.pc);
  const bool goes_on = stop->go_on();
  if (goes_on) {
    traced_[tid] = std::move(stop);
    stop = arrival(tid, Clock::now() + most);
  }
  trap.disarm_return();
  if (goes_on && stop == nullptr) take_late_signals();
  const bool is_there = goes_on && stop != nullptr && stop->outcome() == Stop::Outcome::stopped &&
                        stop->by_own_signal() && stop->registers().pc() == place.pc &&
                        stop->registers().sp() == place.sp;
  return is_there ? std::move(stop) : nullptr;
}

// The thread goes on to its next call of the function (go_to_next_call) from the return of the one that made
// the block. The block's fields are set a few instructions later, and it can be freed soon after: both
// while luaspy is late, or long after luaspy is ready. Neither matters where the thread stands still at the
// next call: what it had to set by then is set, and to free the block it has to make such a call, which has
// not begun. A table gets its new parts when both are there: after one more call, or two (ltable.c,
// luaH_resize). If the thread comes to no call, it has freed nothing, and is read while it runs.
BlockUse Bursts::find_use(Allocator& allocator, Trap& trap, const Block& block) {
  constexpr int most_calls = 3;
  constexpr Clock::duration most = 20ms;  // it may lose its CPU, or allocate no more
  const pid_t tid = allocator.thread->tid();
  const std::vector<Address> words = words_of(allocator.look.reading);
  const auto read = [&] {
    if (loop_.before_use) loop_.before_use();
    return use_of(block, words, allocator.session.target().memory(), allocator.lua, *allocator.objects);
  };
  for (int call = 1;; ++call) {
    std::unique_ptr<Stop> stop = arrival(tid, Clock::now() + most);
    if (stop == nullptr) {
      const BlockUse use = read();
      trap.calls->disarm();
      const bool was_called = !trap.calls->calls().empty();
      take_late_signals();
      return was_called ? BlockUse() : use;
    }
    trap.calls->disarm();
    if (stop->outcome() != Stop::Outcome::stopped) return {};
    const BlockUse use = read();
    if (!trap.calls->calls().empty())
      under_way_.took_ns += state_.trap_cost.going_on() + to_ns(Clock::now() - trap.calls->calls().back().at);
    const bool asks_again = !use.type && call < most_calls && stop->by_own_signal();
    if (!asks_again || !go_to_next_call(allocator, trap, std::move(stop))) return use;
  }
}

// `stop`: the thread, which goes on in any case. True: it stops at the next call.
bool Bursts::go_to_next_call(Allocator& allocator, Trap& trap, std::unique_ptr<Stop> stop) {
  trap.calls->set_number(1);
  stop->expect_trap(allocator.function);
  return arm(allocator, trap, std::move(stop));
}

Bursts::Outcome Bursts::sample(Allocator& allocator, Trap& trap, std::unique_ptr<Stop> stop, Clock::time_point armed,
                               double bytes) {
  const Clock::time_point seen = Clock::now();
  AllocationSample found;
  found.call = call_of(*stop);
  Sampler& sampler = allocator.session.sampler();
  found.G = allocator.G;
  found.block.size = found.call.new_size;
  found.block.is_new = found.call.is_new();
  if (found.block.is_new) found.block.told_type = allocator.lua.type_of_new(found.call.old_size);
  Loss loss = Loss::not_stopped;
  bool returned = false, goes_to_next_call = false;
  if (stop->registers().pc() != allocator.function) stop->resume();
  else stop = await_return(allocator, *trap.calls, std::move(stop));
  if (stop != nullptr && stop->outcome() == Stop::Outcome::stopped) {
    returned = stop->registers().pc() != allocator.function;
    if (returned) found.block.address = stop->registers()[own_machine().result];
    loss = sampler.read_held(*stop, *allocator.thread, allocator.predicted, allocator.look);
    const std::optional<BlockUse> told = told_use(found.block);
    found.use = told.value_or(BlockUse());
    if (!told && allocator.objects != nullptr && loss == Loss::none)
      goes_to_next_call = go_to_next_call(allocator, trap, std::move(stop));
    stop = nullptr;
    sampler.read_after(allocator.predicted, allocator.look);
  }
  const Clock::time_point resumed = Clock::now();
  under_way_.took_ns += state_.trap_cost.going_on() + to_ns(resumed - under_way_.calls.back().at);
  if (goes_to_next_call) found.use = find_use(allocator, trap, found.block);
  Sample sample;
  sample.loss = loss;
  if (sample.loss == Loss::none) {
    sample = sampler.finish(allocator.look, allocator.predicted);
    const std::vector<NativeFrame>& natives = sampler.reader().natives();
    if (returned && sample.loss == Loss::none && natives.size() > 1)
      found.use = state_.uses.settle(
          {natives[0].pc, natives[1].pc, static_cast<Address>(allocator.session.target().process().pid())}, found.block,
          found.use);
  }
  if (sample.loss != Loss::none) {
    ++counts_.unread;
    sink_.add_loss(sample.loss);
    return Outcome::lost;
  }
  ++counts_.samples;
  for (const Activation& active : sampler.reader().active()) loop_.learn(allocator.session, allocator.thread, active);
  const BurstSums& sums = under_way_.sums;
  state_.usual += sums;
  // All calls of the burst together stand for these bytes.
  const double stands_for = bytes / sums.mean_or(state_.usual.mean());
  state_.kinds.add(under_way_.calls, stands_for / static_cast<double>(sums.growing));
  found.calls = state_.kinds.sample(found.call);
  found.bytes = found.calls * static_cast<double>(found.call.growth());
  // The innermost frame is the allocation function: that says nothing.
  if (!returned && !sample.stack.empty() && sample.stack.back().kind == Frame::Kind::native) sample.stack.pop_back();
  sample.stopped_ns = to_ns(resumed - seen);
  sink_.add(allocator.session, *allocator.thread, {to_ns(armed - loop_.start), 0}, found, sample);
  return Outcome::sampled;
}

}  // namespace luaspy
