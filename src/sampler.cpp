#include "sampler.h"

#include "attach/system_calls.h"

namespace luaspy {
namespace {

// The registers that the kernel tells of a sleeping thread are sp and pc.
Registers registers_of(const ThreadState& state) {
  Registers registers;
  registers.set(rip, state.pc);
  registers.set(rsp, state.sp);
  return registers;
}

Sample again() {
  Sample sample;
  sample.state = Sample::State::sleeping;
  sample.again = true;
  return sample;
}

}  // namespace

Sampler::Sampler(Target& target, SamplerOptions options)
    : target_(target), options_(std::move(options)), reader_(target.process(), target.memory(), options_.merging, options_.limits) {}

void Sampler::settle() {
  if (options_.near != nullptr && target_.has_pending()) options_.near->run(-1, [&] { target_.let_go_pending(); });
  else target_.let_go_pending();
  constexpr std::size_t most_threads = 4096;   // remembered; threads that came and went between two ticks are never met again
  if (threads_.size() > most_threads) threads_.clear();
  reader_.settle();
}

// Most threads sleep most of the time, and one that has not been given a CPU since it was seen asleep sleeps on: one small file tells.
// What is counted before the state is read is never too new: a thread that wakes in between is looked at anew the next time.
std::optional<Sample> Sampler::sample(Thread& thread) {
  PerThread& memo = threads_[thread.tid()];
  const std::uint64_t run_count = memo.slept ? thread.run_count() : 0;
  if (run_count != 0 && run_count == memo.run_count) return options_.idle ? std::optional(again()) : std::nullopt;
  const ThreadState state = thread.state();
  memo.slept = state.kind == ThreadState::Kind::sleeping;
  memo.awake = memo.slept ? 0 : memo.awake + 1;
  memo.run_count = 0;
  switch (state.kind) {
    case ThreadState::Kind::running: return look_at_running(thread, memo);
    case ThreadState::Kind::sleeping:
      if (options_.idle) return look_at_sleeping(thread, state, memo);
      memo.run_count = run_count;
      return std::nullopt;
    case ThreadState::Kind::ended: break;
  }
  threads_.erase(thread.tid());
  target_.process().forget_threads();
  Sample sample;
  sample.loss = Loss::ended;
  return sample;
}

// All that happens while the thread stands still. nullopt: it fell asleep before it was stopped, which would have ended its system call. That is
// asked again here, on the thread's own CPU, where it cannot go on meanwhile; but not of a thread that is never seen to sleep.
std::optional<Loss> Sampler::stop_and_read(Thread& thread, PerThread& memo, Registers& registers, std::int64_t& stopped_ns) {
  constexpr int awake_for_long = 1000;
  const bool may_sleep = memo.awake < awake_for_long || stopped_ns != 0;
  if (may_sleep && thread.state().kind == ThreadState::Kind::sleeping) return std::nullopt;
  Target::Stop stop(target_, thread.tid());
  switch (stop.outcome()) {
    case Target::Stop::Outcome::stopped: break;
    case Target::Stop::Outcome::ended: return Loss::ended;
    case Target::Stop::Outcome::refused: return Loss::refused;
    case Target::Stop::Outcome::pending: return Loss::not_stopped;
  }
  registers = stop.registers();
  const bool readable = reader_.read(registers, memo.predicted, true);
  stopped_ns += stop.resume().count();
  return readable ? Loss::none : Loss::unreadable;
}

std::optional<Sample> Sampler::look_at_running(Thread& thread, PerThread& memo) {
  Sample sample;
  constexpr std::chrono::milliseconds cpu_is_news(10);   // asking takes some µs
  if (options_.near != nullptr) {
    const system::Clock::time_point now = system::Clock::now();
    if (now - memo.cpu_asked > cpu_is_news) {
      memo.cpu = thread.cpu(), memo.cpu_asked = now;
      options_.near->keep_off(memo.cpu);
    }
  }
  Registers registers;
  do {
    std::optional<Loss> loss;
    const auto look = [&] { loss = stop_and_read(thread, memo, registers, sample.stopped_ns); };
    if (options_.near != nullptr) options_.near->run(memo.cpu, std::ref(look));
    else look();
    reader_.close();
    if (!loss) return fell_asleep(thread, memo, sample.stopped_ns);
    sample.loss = *loss;
  } while (sample.loss == Loss::none && !reader_.finish(registers, sample, memo.predicted));
  return sample;
}

std::optional<Sample> Sampler::fell_asleep(Thread& thread, PerThread& memo, std::int64_t stopped_ns) {
  memo.slept = true;
  memo.awake = 0;
  if (!options_.idle && stopped_ns == 0) return std::nullopt;
  Sample sample;
  if (options_.idle) sample = look_at_sleeping(thread, thread.state(), memo);
  else sample.loss = Loss::moved;   // after a first stop
  sample.stopped_ns = stopped_ns;
  return sample;
}

// What was read counts if the thread was not scheduled meanwhile.
Sample Sampler::look_at_sleeping(Thread& thread, const ThreadState& state, PerThread& memo) {
  const std::uint64_t run_count = thread.run_count();
  const Registers registers = registers_of(state);
  Sample sample;
  const bool readable = state.sp != 0 && reader_.read(registers, memo.predicted, false);
  reader_.close();
  if (thread.state() != state || thread.run_count() != run_count) {
    sample.state = Sample::State::sleeping;
    sample.loss = Loss::moved;
    return sample;
  }
  finish_sleeping(thread, state, registers, readable, sample, memo.predicted);
  if (readable) memo.run_count = run_count;
  return sample;
}

void Sampler::finish_sleeping(Thread& thread, const ThreadState& state, const Registers& registers, bool readable, Sample& sample,
                              StackReader::Prediction& predicted) {
  sample.state = Sample::State::sleeping;
  if (!readable) {
    sample.loss = Loss::unreadable;
    return;
  }
  reader_.finish(registers, sample, predicted);
  const char letter = thread.state_letter();
  const bool halted = letter == 'T' || letter == 't';
  sample.stack.push_back({Frame::Kind::marker, halted ? "[stopped]" : system_call_name(state.system_call), {}, 0, 0});
}

Sample Sampler::look(const Standstill::Member& member) {
  Sample sample;
  const bool sleeps = member.stop == nullptr;
  const Registers registers = sleeps ? registers_of(member.state) : member.stop->registers();
  if (!sleeps && member.stop->outcome() != Target::Stop::Outcome::stopped) {
    sample.loss = Loss::not_stopped;
    return sample;
  }
  StackReader::Prediction& predicted = threads_[member.thread->tid()].predicted;
  const bool readable = registers.sp() != 0 && reader_.read(registers, predicted, false);
  if (sleeps) finish_sleeping(*member.thread, member.state, registers, readable, sample, predicted);
  else if (readable) reader_.finish(registers, sample, predicted);
  else sample.loss = Loss::unreadable;
  return sample;
}

}  // namespace luaspy
