#include "sampler.h"

#include <algorithm>

#include "attach/system_calls.h"

namespace luaspy {
namespace {

constexpr std::size_t most_stack_bytes = 1 << 20;  // read of a native stack; what is deeper is cut
constexpr std::size_t blind_stack_bytes = 16 << 10;  // for a stack that no known mapping holds
constexpr std::size_t native_limit = 8192;

std::vector<Address> code_starts(const AddressSpace& space) {
  std::vector<Address> starts;
  for (const Mapping& mapping : space.mappings()) {
    if (mapping.executable) starts.push_back(mapping.start);
  }
  return starts;
}

}  // namespace

Sampler::Sampler(Target& target, SamplerOptions options)
    : target_(target),
      options_(options),
      modules_(target.memory(), [&target](const Mapping& mapping) { return target.process().open_mapped(mapping).release(); }),
      unwinder_(modules_),
      native_(modules_, unwinder_),
      lua_(target.memory(), options.limits),
      snapshot_(target.memory()) {
  refresh();
}

void Sampler::refresh() {
  AddressSpace space = target_.process().address_space();
  const bool new_code = code_starts(space) != code_starts(space_);
  space_ = std::move(space);
  lua_.know(space_);
  stale_ = false;
  if (!new_code) return;
  refreshes_in_vain_ = 0;
  modules_.update(space_);
  unwinder_.forget();
  if (!detector_.update(space_, target_.memory())) return;
  lua_.try_rows(detector_.rows());
  native_.update(detector_.images());
}

// A target that maps and unmaps all the time must not make luaspy read its mappings at every tick: the more often nothing
// new was found, the longer the pause.
void Sampler::settle() {
  target_.let_go_pending();
  constexpr std::size_t most_threads = 4096;   // remembered; threads that came and went between two ticks are never met again
  if (threads_.size() > most_threads) threads_.clear();
  if (settles_to_skip_ > 0) --settles_to_skip_;
  if (!stale_ || settles_to_skip_ > 0) return;
  ++refreshes_in_vain_;
  refresh();
  settles_to_skip_ = (1 << std::min(refreshes_in_vain_, 6)) - 1;
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
    readable = read(registers, memo);
    sample.stopped_ns = stop.resume().count();
  }
  snapshot_.close();
  memo.predicted = snapshot_.touched();
  if (!readable) {
    sample.loss = Loss::unreadable;
    return sample;
  }
  finish(registers, sample);
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
  const bool readable = state.sp != 0 && read(registers, memo);
  snapshot_.close();
  if (thread.state() != state || thread.run_count() != run_count) {
    sample.loss = Loss::moved;
    return sample;
  }
  memo.predicted = snapshot_.touched();
  if (!readable) {
    sample.loss = Loss::unreadable;
    return sample;
  }
  finish(registers, sample);
  const char letter = thread.state_letter();
  const bool halted = letter == 'T' || letter == 't';
  sample.stack.push_back({Frame::Kind::marker, halted ? "[stopped]" : system_call_name(state.system_call), {}, 0, 0});
  memo.run_count = run_count;
  memo.asleep = sample;
  return sample;
}

// In the stop: reads, and what decides what to read. The native stack, the states that run, and their calls, all into the
// snapshot. False if there is no stack to read.
bool Sampler::read(const Registers& registers, PerThread& memo) {
  snapshot_.open(registers.sp(), stack_size(registers.sp()), memo.predicted);
  if (snapshot_.stack().empty()) snapshot_.open(registers.sp(), Snapshot::page_size - registers.sp() % Snapshot::page_size, {});
  if (snapshot_.stack().empty()) return false;
  lua_.read(snapshot_, registers, {snapshot_.stack_start(), snapshot_.stack()});
  return true;
}

std::size_t Sampler::stack_size(Address sp) const {
  const Mapping* mapping = space_.find(sp);
  if (mapping == nullptr) {
    // The main thread's stack grows downwards; the mappings were read when it was smaller.
    const auto above = std::ranges::upper_bound(space_.mappings(), sp, {}, &Mapping::start);
    if (above != space_.mappings().end() && above->path == "[stack]") mapping = &*above;
  }
  if (mapping == nullptr || !mapping->readable) return blind_stack_bytes;
  return std::min<std::size_t>(mapping->end - sp, most_stack_bytes);
}

// The thread runs again. Everything from here on works on the snapshot, and on what does not change.
void Sampler::finish(const Registers& registers, Sample& sample) {
  for (const Address entry : lua_.c_entries()) unwinder_.note_entry(entry);
  natives_.clear();
  sample.quality.stacks = 1;
  sample.quality.native_complete = unwinder_.unwind(registers, snapshot_, natives_, native_limit) == Unwinder::End::root;
  for (const NativeFrame& frame : natives_) stale_ |= !modules_.executes(frame.lookup);
  const Merged merged = merge(natives_, lua_.segments(), native_, options_.mode);
  lua_.judge(merged, sample.quality);
  sample.stack = lua_.label(merged, natives_, native_, snapshot_);
}

}  // namespace luaspy
