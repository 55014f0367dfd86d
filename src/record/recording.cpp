#include "record/recording.h"

#include <utility>

namespace luaspy {

Profile::Thread profile_thread(Session& of, const luaspy::Thread& thread) {
  const ThreadKey key = of.key_of(thread);
  return {key.tid, thread.name(), key.pid, of.target().process().command(), key.program, key.started};
}

Recording::Recording(const Shape& shape, bool keeps_order)
    : profile_(keeps_order), shaper_(shape, stacks_, profile_.stacks()) {}

void Recording::write_raw(std::ostream& out) {
  raw_ = std::make_unique<RawWriter>(stacks_, threads_, profile_.about.unit, out);
}

void Recording::add(Session& of, const luaspy::Thread& thread, const Tick& tick, Sample& sample) {
  const std::uint32_t index = index_of(of, thread);
  count(index, tick, sample);
  for (const HeapReading& heap : sample.heaps) {
    if (const std::optional<HeapChange> change = heaps_.take(threads_[index].pid, heap)) count_heap(tick, *change);
  }
}

void Recording::add(const Profile::Thread& thread, const Tick& tick, const Sample& sample) {
  const auto known = thread_index_.find(thread.key());
  count(known != thread_index_.end() ? known->second : add_thread(thread), tick, sample);
}

void Recording::keep_allocations(const Shape& shape) {
  allocated_ = std::make_unique<Allocated>(shape, stacks_);
  allocated_->profile.about.unit = Unit::bytes;
}

void Recording::add_allocation(Session& of, const luaspy::Thread& thread, const RawWriter::Allocation& allocation,
                               const Sample& sample) {
  const std::uint32_t index = index_of(of, thread);
  LastSample& last = known_[index].last_allocation;
  const Sample& facts = last.take(sample, stacks_);
  const std::optional<StackTable::StackId> shaped = allocated_->shaper.shaped(last.stack(), facts.vm_state,
                                                                              threads_[index]);
  if (!shaped) return;
  Profile& profile = allocated_->profile;
  profile.add(profile.index_of(threads_[index]), {allocation.at_ns, allocation.bytes}, facts, *shaped);
  if (raw_) raw_->allocation(index, allocation, facts, last.stack());
}

void Recording::settle_names() {
  profile_.settle_names();
  if (allocated_) allocated_->profile.settle_names();
}

void Recording::count(std::uint32_t index, const Tick& tick, const Sample& sample) {
  Sample lost;
  lost.loss = sample.loss;
  lost.stopped_ns = sample.stopped_ns;
  if (sample.loss == Loss::none) {
    LastSample& last = known_[index].last;
    const Sample& facts = last.take(sample, stacks_);
    const std::optional<StackTable::StackId> shaped = shaper_.shaped(last.stack(), facts.vm_state, threads_[index]);
    if (shaped) {
      count(index, tick, facts, last.stack(), *shaped);
      return counted(threads_[index], *shaped);
    }
    lost.loss = Loss::left_out;
  }
  count(index, tick, lost, 0, 0);
}

void Recording::count(std::uint32_t thread, const Tick& tick, const Sample& facts, StackTable::StackId stack,
                      StackTable::StackId shaped) {
  profile_.add(known_[thread].index, tick, facts, shaped);
  if (raw_) raw_->sample(thread, tick, facts, stack);
}

void Recording::count_heap(const Tick& tick, const HeapChange& change) {
  if (change.state == profile_.heaps.states().size()) {
    const HeapChanges::State& state = heaps_.states()[change.state];
    profile_.heaps.add_state(state);
    if (raw_) raw_->state(state);
  }
  profile_.heaps.add(tick.at_ns, change);
  if (raw_) raw_->heap(tick, change);
}

void Recording::end(Session& session, const Tick& tick) {
  for (const HeapChange& change : heaps_.end(session.target().process().pid())) count_heap(tick, change);
}

void Recording::add_idle(Session&, const luaspy::Thread&, const Tick&, std::int64_t count) {
  profile_.add_idle(count);
  if (raw_) raw_->idle(count);
}

void Recording::add_waiting(Session&, const luaspy::Thread&, const Tick&, std::int64_t count) {
  profile_.add_waiting(count);
  if (raw_) raw_->waiting(count);
}

void Recording::add_loss(Loss loss, std::int64_t count) {
  if (count == 0) return;
  profile_.add_loss(loss, count);
  if (raw_) raw_->loss(loss, count);
}

void Recording::add_source(const std::string& file, Profile::Source source) {
  if (raw_) raw_->source(file, source);
  profile_.sources[file] = std::move(source);
}

void Recording::drop_source(const std::string& file) {
  if (raw_) raw_->source(file, {});
  profile_.sources.erase(file);
}

void Recording::tell(const About& about) {
  profile_.about = about;
  profile_.charge_pauses();
  if (allocated_) {
    profile_.about.allocations = allocated_->profile.samples();
    allocated_->profile.about = about;
    allocated_->profile.about.unit = Unit::bytes;
  }
  if (!raw_) return;
  raw_->about(profile_.about);
  raw_->flush();
}

std::uint32_t Recording::index_of(Session& of, const luaspy::Thread& thread) {
  const auto known = thread_index_.find(of.key_of(thread));
  return known != thread_index_.end() ? known->second : add_thread(profile_thread(of, thread));
}

std::uint32_t Recording::add_thread(const Profile::Thread& thread) {
  const auto index = static_cast<std::uint32_t>(threads_.size());
  thread_index_.emplace(thread.key(), index);
  threads_.push_back(thread);
  known_.emplace_back().index = profile_.index_of(thread);
  return index;
}

}  // namespace luaspy
