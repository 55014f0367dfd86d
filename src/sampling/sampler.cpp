#include "sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>

#include "sampling/debuginfod.h"
#include "stack/kernel_frames.h"
#include "system/call_names.h"

namespace luaspy {
namespace {

// The only registers that the kernel shows of a sleeping thread are sp and pc.
Registers registers_of(const ThreadState& state) {
  Registers registers;
  registers.set_pc(state.pc);
  registers.set_sp(state.sp);
  return registers;
}

Sampler::Sampled lost(Loss loss, Sample::State state = Sample::State::running) {
  Sampler::Sampled sampled;
  sampled.sample.loss = loss;
  sampled.sample.state = state;
  return sampled;
}

SamplerOptions with_tables(SamplerOptions options) {
  if (options.tables == nullptr) options.tables = std::make_shared<EventTables>();
  return options;
}

}  // namespace

Sample asleep_again() {
  Sample sample;
  sample.state = Sample::State::sleeping;
  sample.again = true;
  return sample;
}

Sampler::Sampler(Target& target, const SamplerOptions& options)
    : target_(target),
      options_(with_tables(options)),
      sources_(target.process().pid()),
      reader_(target.process(), target.memory(), options_.tables->stacks, options_.merging, options_.limits,
              options_.known_files),
      look_(target.memory()) {
  reader_.lua().names().use_sources(&sources_);
  if (options_.labels.any()) reader_.label(options_.labels, options_.tables->labels);
  if (options_.looks_once) reader_.lua().copy_functions_always();
}

void Sampler::do_deferred_work() {
  target_.tracer().let_go_pending();
  constexpr std::size_t most_threads = 4096;  // remembered; entries of threads that have ended would otherwise pile up
  if (threads_.size() > most_threads) threads_.clear();
  if (last_stops_.size() > most_threads) last_stops_.clear();
  reader_.refresh_if_stale();
  constexpr std::chrono::seconds apart(1);  // all symbols are read again
  const system::Clock::time_point now = system::Clock::now();
  if (debug_files_come() == debug_files_ || now - symbols_read_ < apart) return;
  debug_files_ = debug_files_come();
  symbols_read_ = now;
  reader_.read_symbols_again();
}

Loss Sampler::read_stopped(Stop& stop, Thread& thread, const StackReader::Prediction& predicted, Look& look) {
  const Loss loss = read_held(stop, thread, predicted, look);
  if (stop.outcome() != Stop::Outcome::stopped) return loss;
  look.stopped_ns = stop.resume().count();
  look.held_ns = (system::Clock::now() - look.seen).count();
  read_after(predicted, look);
  return loss;
}

// Everything that happens while the thread is stopped.
Loss Sampler::read_held(const Stop& stop, Thread& thread, const StackReader::Prediction& predicted, Look& look) {
  look.state = {};
  look.kernel.clear();
  look.stopped_ns = look.held_ns = 0;
  look.seen = system::Clock::now();
  switch (stop.outcome()) {
    case Stop::Outcome::stopped:
      break;
    case Stop::Outcome::ended:
      return Loss::ended;
    case Stop::Outcome::refused:
      return Loss::refused;
    case Stop::Outcome::pending:
      return Loss::not_stopped;
  }
  look.at_system_call = stop.at_system_call();
  look.schedule = thread.schedule();
  return reader_.read(look.reading, stop.registers(), predicted, true) ? Loss::none : Loss::unreadable;
}

void Sampler::read_after(const StackReader::Prediction& predicted, Look& look) {
  reader_.read_after(look.reading, predicted);
}

// The thread has stood still since it lost its CPU if that is still its last switch after
// everything was read.
Loss Sampler::read_without_stop(const SwitchLog& switches, const SwitchLog::Switch& lost,
                                const StackReader::Prediction& predicted, Look& look) {
  look.state = {};
  look.kernel.clear();
  look.halt = Halt::Kind::none;
  look.seen = lost.at;
  look.stopped_ns = look.held_ns = 0;
  const std::optional<Registers> registers = switches.registers(lost, look.at_system_call);
  if (!registers) return Loss::unreadable;
  const bool readable = reader_.read(look.reading, *registers, predicted, true);
  const bool stood_still = switches.is_last(lost);
  reader_.read_after(look.reading, predicted);
  look.stopped_ns = look.held_ns = (system::Clock::now() - lost.at).count();
  if (!stood_still) return Loss::elsewhere;
  return readable ? Loss::none : Loss::unreadable;
}

// What was read is valid if the thread was not scheduled in between.
Loss Sampler::read_asleep(Thread& thread, const ThreadState& state, const StackReader::Prediction& predicted,
                          Look& look) {
  look.schedule = thread.schedule();
  look.state = state;
  look.kernel.clear();
  look.stopped_ns = look.held_ns = 0;
  const bool readable = state.sp != 0 && reader_.read(look.reading, registers_of(state), predicted, false);
  reader_.read_after(look.reading, predicted);
  look.halt = halt_of(target_.process().pid(), thread).kind;
  if (options_.kernel != nullptr) look.kernel_text = thread.kernel_stack();
  if (thread.state() != state || thread.run_count() != look.schedule.runs) return Loss::moved;
  return readable ? Loss::none : Loss::unreadable;
}

Sampler::Sampled Sampler::finish(Look& look, StackReader::Prediction& predicted) {
  StackReader::Finished* const finished = reader_.finish(look.reading, predicted);
  Sampled sampled{finished != nullptr ? std::move(finished->sample) : Sample(), finished};
  Sample& sample = sampled.sample;
  sample.stopped_ns = look.stopped_ns;
  const bool sleeps = look.sleeps();
  if (sleeps) sample.state = Sample::State::sleeping;
  else if (look.tid != 0) last_stops_[look.tid] = {look.reading.registers.sp(), look.seen};
  if (finished == nullptr) {
    sample.loss = Loss::incomplete;
    return sampled;
  }
  sample.quality.at_system_call = !sleeps && look.at_system_call;
  if (options_.kernel != nullptr) {
    const Stack kernel = sleeps ? kernel_stack(look.kernel_text) : kernel_stack(look.kernel, *options_.kernel);
    for (const Frame& frame : kernel) add_frame(sample, frame);
  }
  if (!sleeps) return sampled;
  sample.heaps.clear();  // nothing has changed, unless by another thread, which may be writing
  const bool halted = look.halt != Halt::Kind::none;
  add_frame(sample, marker(halted ? fmt::format("[{}]", name(look.halt)) : system_call_name(look.state.system_call)));
  return sampled;
}

void Sampler::add_frame(Sample& sample, const Frame& frame) {
  StackTable& stacks = tables().stacks;
  sample.stack = stacks.intern({sample.stack, stacks.intern(frame)});
}

// Most threads sleep most of the time, and a thread that was not given a CPU since it was seen
// asleep is still asleep: reading one small file shows that. The run count is read first, so it can
// only be stale, never too new.
std::optional<Sampler::Sampled> Sampler::sample(Thread& thread, bool idle) {
  PerThread& memo = memo_of(thread);
  const std::uint64_t run_count = memo.slept ? thread.run_count() : 0;
  if (run_count != 0 && run_count == memo.run_count)
    return idle ? std::optional(Sampled{asleep_again()}) : std::nullopt;
  const ThreadState state = thread.state();
  memo.slept = state.kind == ThreadState::Kind::sleeping;
  memo.awake = memo.slept ? 0 : memo.awake + 1;
  memo.run_count = 0;
  switch (state.kind) {
    case ThreadState::Kind::running:
      return look_at_running(thread, memo, idle);
    case ThreadState::Kind::sleeping:
      if (idle) return look_at_sleeping(thread, state, memo);
      memo.run_count = run_count;
      return std::nullopt;
    case ThreadState::Kind::ended:
      break;
  }
  threads_.erase({thread.tid(), thread.started()});
  target_.process().forget_threads();
  return lost(Loss::ended);
}

// If a thread falls asleep before it is stopped, the stop interrupts its system call. So its state
// is checked again right before the stop, except for a thread that is never seen asleep.
std::optional<Sampler::Sampled> Sampler::look_at_running(Thread& thread, PerThread& memo, bool idle) {
  constexpr int awake_for_long = 1000, most_looks = 16;  // a look learns from those before what has to be read
  int looks = 0;
  std::int64_t stopped_ns = 0;
  Sampled sampled;
  do {
    const bool may_sleep = memo.awake < awake_for_long || stopped_ns != 0;
    if (may_sleep && thread.state().kind == ThreadState::Kind::sleeping)
      return fell_asleep(thread, memo, stopped_ns, idle);
    Stop stop(target_, thread.tid());
    const Loss loss = read_stopped(stop, thread, memo.predicted, look_);
    stopped_ns += look_.stopped_ns;
    sampled = loss == Loss::none ? finish(look_, memo.predicted) : lost(loss);
  } while (sampled.sample.loss == Loss::incomplete && ++looks < most_looks);
  sampled.sample.stopped_ns = stopped_ns;
  return sampled;
}

std::optional<Sampler::Sampled> Sampler::fell_asleep(Thread& thread, PerThread& memo, std::int64_t stopped_ns,
                                                     bool idle) {
  memo.slept = true;
  memo.awake = 0;
  if (!idle && stopped_ns == 0) return std::nullopt;
  Sampled sampled = idle ? look_at_sleeping(thread, thread.state(), memo) : lost(Loss::moved);  // after a first stop
  sampled.sample.stopped_ns = stopped_ns;
  return sampled;
}

Sampler::Sampled Sampler::look_at_sleeping(Thread& thread, const ThreadState& state, PerThread& memo) {
  const Loss loss = read_asleep(thread, state, memo.predicted, look_);
  if (loss != Loss::none) return lost(loss, Sample::State::sleeping);
  memo.run_count = look_.schedule.runs;
  return finish(look_, memo.predicted);
}

Sampler::Sampled Sampler::look(const HeldThread& member) {
  if (!member.stands_still()) return lost(Loss::not_stopped);
  const bool sleeps = member.sleeps();
  StackReader::Prediction& predicted = memo_of(member.thread()).predicted;
  look_.state = sleeps ? member.state() : ThreadState{};
  look_.halt = sleeps ? halt_of(target_.process().pid(), member.thread()).kind : Halt::Kind::none;
  look_.kernel.clear();
  if (sleeps && options_.kernel != nullptr) look_.kernel_text = member.thread().kernel_stack();
  look_.at_system_call = !sleeps && member.stop()->at_system_call();
  look_.stopped_ns = 0;
  const Registers registers = member.registers();
  if (registers.sp() != 0 && reader_.read(look_.reading, registers, predicted, false)) return finish(look_, predicted);
  return lost(Loss::unreadable, sleeps ? Sample::State::sleeping : Sample::State::running);
}

}  // namespace luaspy
