#include "sampler.h"

#include "attach/system_calls.h"

namespace luaspy {

Sampler::Sampler(Target& target, SamplerOptions options)
    : target_(target), options_(options), reader_(target.process(), target.memory(), options.merging, options.limits) {}

void Sampler::settle() {
  target_.let_go_pending();
  constexpr std::size_t most_threads = 4096;   // remembered; threads that came and went between two ticks are never met again
  if (threads_.size() > most_threads) threads_.clear();
  reader_.settle();
}

std::optional<Sample> Sampler::sample(Thread& thread) {
  PerThread& memo = threads_[thread.tid()];
  const ThreadState state = thread.state();
  switch (state.kind) {
    case ThreadState::Kind::running: return look_at_running(thread, memo);
    case ThreadState::Kind::sleeping: return options_.idle ? look_at_sleeping(thread, state, memo) : std::nullopt;
    case ThreadState::Kind::ended: break;
  }
  threads_.erase(thread.tid());
  target_.process().forget_threads();
  Sample sample;
  sample.loss = Loss::ended;
  return sample;
}

std::optional<Sample> Sampler::look_at_running(Thread& thread, PerThread& memo) {
  Sample sample;
  memo.asleep.reset();
  Registers registers;
  bool readable = false;
  {
    Target::Stop stop(target_, thread.tid());
    switch (stop.outcome()) {
      case Target::Stop::Outcome::stopped: break;
      case Target::Stop::Outcome::ended: sample.loss = Loss::ended; return sample;
      case Target::Stop::Outcome::refused: sample.loss = Loss::refused; return sample;
      case Target::Stop::Outcome::pending: sample.loss = Loss::not_stopped; return sample;
    }
    registers = stop.registers();
    readable = reader_.read(registers, memo.predicted);
    sample.stopped_ns = stop.resume().count();
  }
  reader_.close();
  memo.predicted = reader_.touched();
  if (!readable) {
    sample.loss = Loss::unreadable;
    return sample;
  }
  reader_.finish(registers, sample);
  return sample;
}

// The registers that the kernel tells of a sleeping thread are sp and pc. What was read counts if the thread was not
// scheduled meanwhile.
std::optional<Sample> Sampler::look_at_sleeping(Thread& thread, const ThreadState& state, PerThread& memo) {
  const std::string run_count = thread.run_count();
  if (memo.asleep && !run_count.empty() && memo.run_count == run_count) return memo.asleep;
  memo.asleep.reset();
  Registers registers;
  registers.set(rip, state.pc);
  registers.set(rsp, state.sp);
  Sample sample;
  sample.state = Sample::State::sleeping;
  const bool readable = state.sp != 0 && reader_.read(registers, memo.predicted);
  reader_.close();
  if (thread.state() != state || thread.run_count() != run_count) {
    sample.loss = Loss::moved;
    return sample;
  }
  memo.predicted = reader_.touched();
  if (!readable) {
    sample.loss = Loss::unreadable;
    return sample;
  }
  reader_.finish(registers, sample);
  const char letter = thread.state_letter();
  const bool halted = letter == 'T' || letter == 't';
  sample.stack.push_back({Frame::Kind::marker, halted ? "[stopped]" : system_call_name(state.system_call), {}, 0, 0});
  memo.run_count = run_count;
  memo.asleep = sample;
  return sample;
}

}  // namespace luaspy
