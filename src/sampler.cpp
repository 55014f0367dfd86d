#include "sampler.h"

#include <fmt/format.h>

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
      names_(target.memory()),
      snapshot_(target.memory()) {
  refresh();
}

void Sampler::refresh() {
  AddressSpace space = target_.process().address_space();
  const bool new_code = code_starts(space) != code_starts(space_);
  space_ = std::move(space);
  stale_ = false;
  if (!new_code) return;
  refreshes_in_vain_ = 0;
  modules_.update(space_);
  unwinder_.forget();
  if (!detector_.update(space_, target_.memory())) return;
  locator_.forget();
  locator_.try_rows(detector_.rows());
  native_.update(detector_.images());
}

// A target that maps and unmaps all the time must not make luaspy read its mappings at every tick: the more often nothing
// new was found, the longer the pause.
void Sampler::settle() {
  target_.let_go_pending();
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
  return std::nullopt;
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
  state_count_ = 0;
  snapshot_.open(registers.sp(), stack_size(registers.sp()), memo.predicted);
  if (snapshot_.stack().empty()) snapshot_.open(registers.sp(), Snapshot::page_size - registers.sp() % Snapshot::page_size, {});
  if (snapshot_.stack().empty()) return false;
  locator_.locate(snapshot_, registers, {snapshot_.stack_start(), snapshot_.stack()}, active_);
  if (states_.size() < active_.size()) states_.resize(active_.size());
  for (const Activation& activation : active_) {
    LuaState& state = states_[state_count_++];
    state.activation = activation;
    walk_puc(snapshot_, *activation.layout, activation.L, options_.limits, state.walk);
  }
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
  std::vector<Segment> segments;
  Quality& quality = sample.quality;
  quality.stacks = 1;
  quality.with_lua = state_count_ != 0;
  for (std::size_t i = 0; i < state_count_; ++i) {
    const LuaWalk& walk = states_[i].walk;
    for (const LuaCall& call : walk.calls) {
      if (!call.is_lua) unwinder_.note_entry(call.entry);
    }
    segments.push_back({&walk, states_[i].activation.boundary});
    quality.lua_broken |= walk.end == LuaWalk::End::broken;
    quality.half_built += walk.innermost_dropped;
    quality.calls_dropped += walk.dropped;
    quality.relocated |= walk.relocated;
  }
  quality.lua_unusable = state_count_ != 0 && states_[0].walk.calls.empty() && states_[0].walk.end == LuaWalk::End::broken;

  natives_.clear();
  quality.native_complete = unwinder_.unwind(registers, snapshot_, natives_, native_limit) == Unwinder::End::root;
  for (const NativeFrame& frame : natives_) stale_ |= !modules_.executes(frame.lookup);

  const Merged merged = merge(natives_, segments, native_, options_.mode);
  quality.not_joined = !merged.joined;
  quality.fresh_mismatch = state_count_ != 0 && merged.execute_frames != merged.fresh_calls;
  learn_pcs(merged);
  sample.stack = label(merged);
}

// Of each luaV_execute frame but the innermost, the first call that it owns waits for a callee: its saved pc is exact.
void Sampler::learn_pcs(const Merged& merged) {
  std::size_t last = MergedFrame::no_native;
  bool first = true;
  for (const MergedFrame& frame : merged.frames) {
    if (frame.kind != MergedFrame::Kind::call) continue;
    const LuaCall& call = states_[frame.segment].walk.calls[frame.call];
    if (call.is_lua && frame.native != MergedFrame::no_native && frame.native != last) {
      last = frame.native;
      if (!first) live_pc_.learn(natives_[frame.native], call, snapshot_);
    }
    first = false;
  }
}

// Only the innermost call of all can be ahead of its saved pc; every other one waits.
Address Sampler::live_pc(const Merged& merged, std::size_t position) {
  const MergedFrame& frame = merged.frames[position];
  const LuaState& state = states_[frame.segment];
  const LuaCall& call = state.walk.calls[frame.call];
  const bool in_memory = state.activation.layout->bytecode == Bytecode::lua52 || state.activation.layout->bytecode == Bytecode::lua53;
  const bool innermost = frame.segment == 0 && frame.call == 0 && state.walk.innermost_dropped == 0;
  if (in_memory || !innermost || frame.native == MergedFrame::no_native) return call.saved_pc;
  return live_pc_.pc(natives_[frame.native], call, snapshot_, native_.code(natives_[frame.native]));
}

Stack Sampler::label(const Merged& merged) {
  Stack stack;
  for (std::size_t i = 0; i < merged.frames.size(); ++i) {
    const MergedFrame& frame = merged.frames[i];
    switch (frame.kind) {
      case MergedFrame::Kind::native: stack.push_back(native_.describe(natives_[frame.native])); break;
      case MergedFrame::Kind::not_joined: stack.push_back({Frame::Kind::marker, "[native and Lua frames not joined]", {}, 0, 0}); break;
      case MergedFrame::Kind::left_out: {
        const std::int64_t count = states_[frame.segment].walk.left_out;
        stack.push_back({Frame::Kind::marker, count > 0 && options_.limits.count_left_out ? fmt::format("[{} frames left out]", count) : "[frames left out]", {}, 0, 0});
        break;
      }
      case MergedFrame::Kind::call: {
        const LuaState& state = states_[frame.segment];
        const auto& calls = state.walk.calls;
        const LuaCall& call = calls[frame.call];
        const bool has_caller = frame.call + 1 < calls.size() && !(state.walk.left_out != 0 && frame.call + 1 == state.walk.cut_at);
        const LuaCall* const caller = has_caller ? &calls[frame.call + 1] : nullptr;
        Frame labelled = names_.frame(*state.activation.layout, state.activation.G, call, caller, call.is_lua ? live_pc(merged, i) : 0);
        if (!call.is_lua) {
          const Frame native = native_.describe_entry(call.entry);
          labelled.file = native.file;
          if (labelled.name.empty() || labelled.name == "?") labelled.name = native.name;
        }
        stack.push_back(std::move(labelled));
        if (call.tail) stack.push_back({Frame::Kind::marker, "(...tail calls...)", {}, 0, 0});
        break;
      }
    }
  }
  std::ranges::reverse(stack);
  return stack;
}

std::vector<std::string> Sampler::rows() const {
  std::vector<std::string> names;
  for (const auto& [G, row] : locator_.global_states()) {
    const std::string name = "Lua " + std::string(row->name);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace luaspy
