#include "input/recording_part.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "input/raw_fields.h"

namespace luaspy {

RecordingPart::RecordingPart(const ViewOptions& shape, const RawWindow& window, bool keeps_order, RawEvents* events)
    : window_(window),
      events_(events),
      mode_(shape.mode),
      built_(tables_, shape, keeps_order),
      built_of_allocations_(tables_, shape, false),
      suspended_(tables_, shape, keeps_order) {
  if (shape.tracks) tracks_.emplace(tables_, built_);
}

ThreadId RecordingPart::thread(const ThreadInfo& thread) {
  const ThreadId id = tables_.threads.intern(thread);
  if (!is_asked_for_.has(id))
    is_asked_for_.add(window_.thread.empty() || thread.name.find(window_.thread) != std::string::npos ||
                      std::to_string(thread.tid) == window_.thread);
  return id;
}

void RecordingPart::count(Unit unit) {
  unit_ = unit;
  takes_allocations_ = window_.allocations && unit == Unit::nanoseconds;
  about().unit = takes_allocations_ ? *window_.allocations : unit;
}

// Rejects a file whose numbers would overflow the sum.
bool RecordingPart::add_up(std::int64_t number) {
  sum_ += number;
  return static_cast<std::uint64_t>(sum_) <= any_number;
}

bool RecordingPart::tick(std::int64_t passed, std::int64_t weight, std::int64_t samples) {
  if (static_cast<std::uint64_t>(tick_.at_ns + passed) > any_number) return false;
  tick_ = {tick_.at_ns + passed, weight, samples};
  // In bytes and objects, samples of one tick have different weights, and each has its own tick
  // record.
  ticks_ += passed != 0 || unit_ == Unit::nanoseconds;
  if (events_ != nullptr && is_in_window()) begin_window();  // events come in the order of time
  return true;
}

bool RecordingPart::sample(ThreadId thread, const Sample& sample) {
  if (!add_up(sample.stopped_ns) || !add_up(tick_.weight) || !add_up(tick_.samples)) return false;
  if (!takes_allocations_ && is_asked_for_[thread] && is_in_window()) add(thread, tick_, sample);
  return true;
}

bool RecordingPart::lost(ThreadId thread, Loss loss, std::int64_t stopped_ns) {
  if (!add_up(stopped_ns) || !add_up(tick_.weight)) return false;
  if (takes_allocations_ || !is_asked_for_[thread] || !is_in_window()) return true;
  built_.lose(thread, loss, stopped_ns);
  if (events() != nullptr) events_->lost(thread, of_window(tick_), loss, stopped_ns);
  return true;
}

bool RecordingPart::allocation(ThreadId thread, std::int64_t passed, std::int64_t bytes, std::int64_t objects,
                               const Sample& sample) {
  if (static_cast<std::uint64_t>(tick_.at_ns + passed) > any_number) return false;
  const std::int64_t at_ns = tick_.at_ns + passed;
  if (!takes_allocations_) {
    if (is_asked_for_[thread] && is_in_window(at_ns) && events() != nullptr &&
        built_of_allocations_.add(thread, {at_ns, bytes}, sample))
      events_->allocation(thread, at_ns - window_.from_ns, bytes, objects, sample);
    return true;
  }
  const Tick tick = {at_ns, about().unit == Unit::objects ? objects : bytes};
  if (!add_up(sample.stopped_ns) || !add_up(tick.weight)) return false;
  if (is_asked_for_[thread] && is_in_window(tick.at_ns)) add(thread, tick, sample);
  return true;
}

void RecordingPart::add(ThreadId thread, const Tick& at, const Sample& sample) {
  const bool is_shown = built_.add(thread, of_window(at), sample).has_value();
  if (events() == nullptr) return;
  if (is_shown) events_->sample(thread, of_window(at), sample);
  else events_->lost(thread, of_window(at), Loss::left_out, sample.stopped_ns);
}

RawEvents* RecordingPart::events() {
  if (events_ != nullptr && !std::exchange(events_begun_, true)) events_->begin(tables_, unit_);
  return events_;
}

void RecordingPart::loss(Loss loss, std::int64_t count) {
  if (!counts()) return;
  profile_.add_loss(loss, count);
  if (events() != nullptr) events_->loss(loss, count);
}

void RecordingPart::idle(std::int64_t count) {
  if (!counts()) return;
  profile_.add_idle(count);
  if (events() != nullptr) events_->idle(count);
}

void RecordingPart::waiting(std::int64_t count) {
  if (!counts()) return;
  profile_.add_waiting(count);
  if (events() != nullptr) events_->waiting(count);
}

bool RecordingPart::state(const HeapChanges::State& state) {
  if (heaps_.size() == HeapChanges::most_states) return false;
  heaps_.push_back({state, {}, {}, 0});
  return true;
}

bool RecordingPart::heap(std::uint32_t state, std::int64_t change, CollectorPhase phase, bool collected) {
  KnownHeap& known = heaps_[state];
  known.bytes += change;
  if (known.bytes < 0 || known.bytes > HeapReading::most_bytes) return false;
  const HeapChange now = {state, known.bytes, phase, collected};
  if (tick_.at_ns < window_.from_ns) known.before = now;
  else if (is_in_window()) begin_window(), add(known, tick_.at_ns - window_.from_ns, now);
  return true;
}

void RecordingPart::mark(Mark mark) {
  if (!is_in_window(mark.at_ns) || profile_.marks.size() >= most_marks) return;
  mark.at_ns -= window_.from_ns;
  if (events() != nullptr) events_->mark(mark);
  profile_.marks.push_back(std::move(mark));
}

bool RecordingPart::suspended(SuspendedLook look) {
  for (const SuspendedGroup& group : look.groups) {
    const auto count = static_cast<std::uint64_t>(group.count);
    if (count != 0 && static_cast<std::uint64_t>(look.weight_ns) > any_number / count) return false;
    if (!add_up(look.weight_ns * group.count) || !add_up(group.count)) return false;
  }
  if (!is_in_window(look.at_ns)) return true;
  look.at_ns -= window_.from_ns;
  look.weight_ns = std::min(look.weight_ns, look.at_ns);  // what was before is not asked for
  std::erase_if(look.groups, [&](const SuspendedGroup& group) { return !suspended_.shows(look, group); });
  if (events() != nullptr) events_->suspended(look);
  suspended_.add(look);
  if (tracks_) tracks_->add(look);
  return true;
}

// The heaps begin with the sizes that they had before.
void RecordingPart::begin_window() {
  for (KnownHeap& known : heaps_) {
    if (!known.before) continue;
    HeapChange before = *std::exchange(known.before, {});
    before.collected = false;
    if (before.bytes != 0) add(known, 0, before);
  }
}

void RecordingPart::add(KnownHeap& known, std::int64_t at_ns, HeapChange change) {
  if (!known.index) {
    known.index = profile_.heaps.add_state(known.state);
    if (events() != nullptr) events_->state(known.state);
  }
  change.state = *known.index;
  profile_.heaps.add(at_ns, change);
  if (events() != nullptr) events_->heap({at_ns, 0}, change);
}

// It is of the same recording.
Profile RecordingPart::finish_suspended() {
  suspended_.profile().about = profile_.about;
  suspended_.finish();
  if (window_.suspended) suspended_.profile().sources = std::move(profile_.sources);
  return std::move(suspended_.profile());
}

Profile RecordingPart::finish(bool whole) {
  begin_window();
  built_.finish();
  Metadata& about = profile_.about;
  about.duration_ns = std::max(about.duration_ns, tick_.at_ns);
  if (!about.complete || !whole || about.ticks == 0) about.ticks += ticks_;
  about.sampled_ns = std::min(about.sampled_ns, about.duration_ns);
  if (takes_allocations_) {
    about.ticks = std::exchange(about.allocations, 0);
    about.sampled_ns = about.duration_ns - about.looked_ns();
  }
  if (window_.from_ns > 0 || window_.to_ns) {
    // The file does not list ticks at which all threads slept: they are assumed to be evenly
    // distributed.
    const std::int64_t all_ns = about.duration_ns;
    about.duration_ns = std::max<std::int64_t>(std::min(window_.to_ns.value_or(all_ns), all_ns) - window_.from_ns, 0);
    about.cpu = {.system_share = about.cpu.system_share};  // the rest is of the whole recording
    about.sampled_cpu_ns = 0;
    if (all_ns > 0) {
      const double part = static_cast<double>(about.duration_ns) / static_cast<double>(all_ns);
      for (std::int64_t* const number : {&about.ticks, &about.sampled_ns, &about.allocations})
        *number = static_cast<std::int64_t>(std::llround(static_cast<double>(*number) * part));
    }
  }
  about.complete = about.complete && whole;
  if (about.mode != name(Mode::native)) about.mode = name(mode_);
  if (window_.suspended) return finish_suspended();
  profile_.charge_pauses();
  if (suspended_.has_looks()) profile_.waits = std::make_shared<Profile>(finish_suspended());
  if (events() != nullptr) events_->end(profile_);
  return std::move(profile_);
}

}  // namespace luaspy
