// The end of a burst: its last call becomes a sample.

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "allocations/bursts.h"
#include "allocations/heap_now.h"
#include "allocations/ptraced_threads.h"

namespace luaspy {
namespace {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

AllocationCall call_of(const TracedThread& stop) {
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

// The thread stands still where the call returns, with the block's address; if there is no trap for
// that, still at the function's first instruction. nullptr: it does not return soon.
std::unique_ptr<TracedThread> Bursts::await_return(Allocator& allocator, CallTrap& trap,
                                                   std::unique_ptr<TracedThread> stop) {
  constexpr Clock::duration most = 50ms;  // it may lose its CPU meanwhile
  const pid_t tid = allocator.thread->tid();
  const Registers called = stop->registers();
  const ReturnPlace place = return_place(called, allocator.memory);
  if (place.pc == 0 || !trap.arm_return(place.pc)) return stop;
  stop->expect_trap(place.pc);
  const bool goes_on = stop->go_on();
  if (goes_on) {
    traced_[tid] = std::move(stop);
    stop = arrival(tid, threads_.now() + most);
  }
  trap.disarm_return();
  if (goes_on && stop == nullptr) drain_late_signals();
  const bool is_there = goes_on && stop != nullptr && stop->outcome() == Stop::Outcome::stopped &&
                        stop->by_own_signal() && stop->registers().pc() == place.pc &&
                        stop->registers().sp() == place.sp;
  return is_there ? std::move(stop) : nullptr;
}

// The thread stands still at its next call; nullptr: it sleeps, has lost its CPU, or allocates no more.
std::unique_ptr<TracedThread> Bursts::next_call(const Thread& thread) {
  constexpr Clock::duration most = 20ms, a_while = 1ms;
  const Clock::time_point end = threads_.now() + most;
  for (;;) {
    std::unique_ptr<TracedThread> stop = arrival(thread.tid(), threads_.now() + a_while);
    if (stop != nullptr || threads_.now() >= end || thread.state().kind == ThreadState::Kind::sleeping) return stop;
  }
}

// The thread goes on to its next call of the function (go_to_next_call) from the return of the one that made
// the block. The block's fields are set a few instructions later, and it can be freed soon after: both
// while luaspy is late, or long after luaspy is ready. Neither matters where the thread stands still at the
// next call: what it had to set by then is set, and to free the block it has to make such a call, which has
// not begun. A table gets its new parts when both are there: after one more call, or two (ltable.c,
// luaH_resize). If the thread comes to no call, it has freed nothing, and is read while it runs.
BlockUse Bursts::find_use(Allocator& allocator, const Allocator& caller, Trap& trap, const Block& block) {
  constexpr int most_calls = 3;
  const std::vector<Address> words = words_of(allocator.look.reading);
  const auto read = [&] {
    if (loop_.before_use) loop_.before_use();
    return use_of(block, words, allocator.memory, caller.lua, *caller.objects);
  };
  for (int call = 1;; ++call) {
    std::unique_ptr<TracedThread> stop = next_call(*allocator.thread);
    if (stop == nullptr) {
      const BlockUse use = read();
      trap.calls->disarm();
      const bool was_called = !trap.calls->calls().empty();
      drain_late_signals();
      return was_called ? BlockUse() : use;
    }
    trap.calls->disarm();
    if (stop->outcome() != Stop::Outcome::stopped) return {};
    const BlockUse use = read();
    if (!trap.calls->calls().empty())
      allocator.burst.took_ns += state_.trap_cost.going_on() + to_ns(threads_.now() - trap.calls->calls().back().at);
    const bool asks_again = !use.type && call < most_calls && stop->by_own_signal();
    if (!asks_again || !go_to_next_call(allocator, trap, std::move(stop))) return use;
  }
}

// `stop`: the thread, which goes on in any case. True: it stops at the next call.
bool Bursts::go_to_next_call(Allocator& allocator, Trap& trap, std::unique_ptr<TracedThread> stop) {
  set_number(trap, 1);
  stop->expect_trap(allocator.function);
  return release(allocator, trap, std::move(stop));
}

// Luas that share a function share its trap: the call need not be one of the Lua whose burst it is. nullptr: of
// one that is not known yet.
Allocator* Bursts::caller_of(Allocator& allocator) {
  const std::vector<ActiveState>& active = allocator.look.reading.located.active;  // the innermost first
  if (active.empty() || active.front().G == allocator.G) return &allocator;
  for (const auto& other : loop_.allocators()) {
    if (other->session == allocator.session && other->G == active.front().G) return other.get();
  }
  return nullptr;
}

// The stack is read at the end of the call, and what the block is for at the next one.
Bursts::Looked Bursts::look(Allocator& allocator, Trap& trap, std::unique_ptr<TracedThread> stop,
                            AllocationSample& found) {
  OpenBurst& burst = allocator.burst;
  Sampler& sampler = allocator.session->sampler();
  Looked looked;
  found.call = call_of(*stop);
  found.block = {0, found.call.new_size, {}, found.call.is_new()};
  if (stop->registers().pc() != allocator.function) stop->resume();
  else stop = await_return(allocator, *trap.calls, std::move(stop));
  Allocator* goes_to_next_call = nullptr;
  if (stop != nullptr && stop->outcome() == Stop::Outcome::stopped) {
    looked.returned = stop->registers().pc() != allocator.function;
    if (looked.returned) found.block.address = stop->registers()[own_machine().result];
    burst.heap = heap_now(allocator.memory, allocator.lua, allocator.G);
    if (burst.heap) *burst.heap += static_cast<std::int64_t>(found.call.growth());  // counted when it has returned
    looked.loss = sampler.read_held(static_cast<const PtracedThread&>(*stop).stop(), *allocator.thread,
                                    allocator.predicted, allocator.look);
    Allocator* const caller = looked.loss == Loss::none ? caller_of(allocator) : nullptr;
    if (caller != nullptr) {
      found.G = caller->G, found.identity = caller->identity;
      if (found.block.is_new) found.block.told_type = caller->lua.type_of_new(found.call.old_size);
      const std::optional<BlockUse> told = told_use(found.block);
      found.use = told.value_or(BlockUse());
      if (!told && caller->objects != nullptr && go_to_next_call(allocator, trap, std::move(stop)))
        goes_to_next_call = caller;
    }
    stop = nullptr;
    sampler.read_after(allocator.predicted, allocator.look);
  }
  looked.resumed = threads_.now();
  burst.took_ns += state_.trap_cost.going_on() + to_ns(looked.resumed - burst.calls.back().at);
  if (goes_to_next_call != nullptr) found.use = find_use(allocator, *goes_to_next_call, trap, found.block);
  return looked;
}

Bursts::Outcome Bursts::sample(Allocator& allocator, Trap& trap, std::unique_ptr<TracedThread> stop) {
  OpenBurst& burst = allocator.burst;
  burst.heap = {};
  const Clock::time_point seen = threads_.now();
  AllocationSample found;
  const Looked looked = look(allocator, trap, std::move(stop), found);
  Sampler& sampler = allocator.session->sampler();
  Sampler::Sampled sampled;
  Sample& sample = sampled.sample;
  sample.loss = looked.loss;
  if (sample.loss == Loss::none) sampled = sampler.finish(allocator.look, allocator.predicted);
  if (sample.loss != Loss::none) {
    ++counts_.unread;
    sink_.add_loss(sample.loss);
    return Outcome::lost;
  }
  ++counts_.samples;
  const std::vector<NativeFrame>& natives = sampled.from->natives();
  if (looked.returned && natives.size() > 1) {
    const auto pid = static_cast<Address>(allocator.pid);
    found.use = state_.uses.resolve({natives[0].pc, natives[1].pc, pid}, found.block, found.use);
  }
  for (const ActiveState& active : sampled.from->active())
    loop_.add_allocator(*allocator.session, allocator.thread, active);
  const BurstSums& sums = burst.sums;
  state_.usual += sums;
  allocator.usual += sums;
  // All calls of the burst together stand for these bytes.
  const double stands_for = burst.bytes / sums.mean_or(state_.usual.mean());
  state_.kinds.add(burst.calls, stands_for);
  found.calls = state_.kinds.sample(found.call);
  found.bytes = found.calls * static_cast<double>(found.call.growth());
  // The innermost frame is the allocation function: that says nothing.
  const StackTable& stacks = sampler.tables().stacks;
  const StackTable::Node& innermost = stacks.nodes()[sample.stack];
  if (!looked.returned && sample.stack != empty_stack && stacks.frames()[innermost.frame].kind == Frame::Kind::native)
    sample.stack = innermost.outer;
  sample.stopped_ns = to_ns(looked.resumed - seen);
  sink_.add(allocator.session->id_of(*allocator.thread), {to_ns(burst.calls.back().at - loop_.start), 0}, found,
            sample);
  return Outcome::sampled;
}

}  // namespace luaspy
