#include "recording/recording.h"

#include <utility>

namespace luaspy {

Recording::Recording(const EventTables& tables, const ViewOptions& shape, bool keeps_order)
    : tables_(tables), built_(tables, shape, keeps_order) {}

// Whenever luaspy ends from now on, there is a recording.
void Recording::write_raw(std::ostream& out) {
  raw_ = std::make_unique<RawWriter>(tables_, profile().about.unit, out);
  raw_->flush();
}

void Recording::add(ThreadId thread, const Tick& tick, const Sample& sample) {
  Loss loss = sample.loss;
  if (loss != Loss::none) {
    built_.lose(thread, loss, sample.stopped_ns);
  } else if (const std::optional<StackId> stack = built_.add(thread, tick, sample)) {
    if (raw_) raw_->sample(thread, tick, sample);
    counted(tables_.threads[thread], *stack);
  } else {
    loss = Loss::left_out;
  }
  if (raw_ && loss != Loss::none) raw_->lost(thread, tick, loss, sample.stopped_ns);
  for (const HeapReading& heap : sample.heaps) {
    if (const std::optional<HeapChange> change = heaps_.observe(tables_.threads[thread].pid, heap))
      count_heap(tick, *change);
  }
}

void Recording::keep_allocations(const ViewOptions& shape) {
  allocated_ = std::make_unique<ProfileBuilder>(tables_, shape, false);
  allocated_->profile().about.unit = Unit::bytes;
}

void Recording::add_allocation(ThreadId thread, const RawWriter::Allocation& allocation, const Sample& sample) {
  const bool shows = allocated_->add(thread, {allocation.at_ns, allocation.bytes}, sample).has_value();
  if (raw_ && shows) raw_->allocation(thread, allocation, sample);
}

void Recording::keep_suspended(const ViewOptions& shape) {
  suspended_ = std::make_unique<SuspendedProfile>(tables_, shape, false);
  if (shape.tracks) tracks_.emplace(tables_, built_);
}

void Recording::add_suspended(const SuspendedLook& look) {
  suspended_->add(look);
  if (tracks_) tracks_->add(look);
  if (raw_) raw_->suspended(look);
}

void Recording::resolve_names() {
  built_.profile().resolve_names();
  if (suspended_) suspended_->profile().resolve_names();
  if (allocated_) allocated_->profile().resolve_names();
}

void Recording::count_heap(const Tick& tick, const HeapChange& change) {
  if (change.state == built_.profile().heaps.states().size()) {
    const HeapChanges::State& state = heaps_.states()[change.state];
    built_.profile().heaps.add_state(state);
    if (raw_) raw_->state(state);
  }
  built_.profile().heaps.add(tick.at_ns, change);
  if (raw_) raw_->heap(tick, change);
}

void Recording::end(int pid, const Tick& tick) {
  for (const HeapChange& change : heaps_.end(pid)) count_heap(tick, change);
}

void Recording::add_idle(ThreadId, std::int64_t count) {
  built_.profile().add_idle(count);
  if (raw_) raw_->idle(count);
}

void Recording::add_waiting(ThreadId, std::int64_t count) {
  built_.profile().add_waiting(count);
  if (raw_) raw_->waiting(count);
}

void Recording::add_loss(Loss loss, std::int64_t count) {
  if (count == 0) return;
  built_.profile().add_loss(loss, count);
  if (raw_) raw_->loss(loss, count);
}

void Recording::add_mark(Mark mark) {
  if (built_.profile().marks.size() >= most_marks) return;
  if (raw_) raw_->mark(mark);
  built_.profile().marks.push_back(std::move(mark));
}

void Recording::add_source(const std::string& file, Profile::Source source) {
  if (raw_) raw_->source(file, source);
  built_.profile().sources[file] = std::move(source);
}

void Recording::drop_source(const std::string& file) {
  if (raw_) raw_->source(file, {});
  built_.profile().sources.erase(file);
}

void Recording::set_metadata(const Metadata& about) {
  built_.profile().about = about;
  built_.profile().charge_pauses();
  if (allocated_) {
    built_.profile().about.allocations = allocated_->profile().samples();
    allocated_->profile().about = about;
    allocated_->profile().about.unit = Unit::bytes;
  }
  if (suspended_) suspended_->profile().about = about;
  if (!raw_) return;
  raw_->about(built_.profile().about);
  raw_->flush();
}

}  // namespace luaspy
