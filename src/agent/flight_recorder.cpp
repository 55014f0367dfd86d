#include "agent/flight_recorder.h"

#include <algorithm>

#include "agent/known_programs.h"

namespace luaspy {

using system::Clock;

namespace {
constexpr int part_count = 10;  // of the time, and of the memory, that is kept
}

FlightRecorder::FlightRecorder(const EventTables& tables, Options options)
    : tables_(tables), options_(std::move(options)) {}

void FlightRecorder::open(Clock::time_point at) {
  open_ = std::make_unique<KeptPart>();
  open_->began = at;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch() - (Clock::now() - at);
  open_->started_s = std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
  raw_.str({});
  writer_ = std::make_unique<RawWriter>(tables_, Unit::nanoseconds, raw_);
  heaps_ = {};
  states_ = 0;
}

// CPU samplers have clocks of their own, and reports from them come one after the other: a tick from before the part
// began is at its beginning.
Tick FlightRecorder::in_part(const Tick& tick) const {
  return {std::max<std::int64_t>(tick.at_ns + system::to_ns(start_ - open_->began), 0), tick.weight, tick.samples};
}

KeptPart::Of& FlightRecorder::program_of(ThreadId id, Clock::time_point at) {
  if (writer_ == nullptr) open(at);
  const ThreadInfo& thread = tables_.threads[id];
  const auto [place, added] = open_->programs.try_emplace({thread.pid, thread.program});
  if (added) place->second.about = about_program(thread.pid, thread.process);
  return place->second;
}

void FlightRecorder::add(ThreadId thread, const Tick& at, const Sample& sample) {
  KeptPart::Of& program = program_of(thread, start_ + std::chrono::nanoseconds(at.at_ns));
  const Tick tick = in_part(at);
  if (sample.loss != Loss::none) return writer_->lost(thread, tick, sample.loss, sample.stopped_ns);
  ++program.samples;
  writer_->sample(thread, tick, sample);
  for (const HeapReading& heap : sample.heaps) {
    if (const auto change = heaps_.observe(tables_.threads[thread].pid, heap)) write(tick, *change);
  }
}

void FlightRecorder::write(const Tick& tick, const HeapChange& change) {
  if (change.state == states_) writer_->state(heaps_.states()[states_++]);
  writer_->heap(tick, change);
}

void FlightRecorder::end(int pid, const Tick& tick) {
  if (writer_ == nullptr) return;
  for (const HeapChange& change : heaps_.end(pid)) write(in_part(tick), change);
}

void FlightRecorder::add_idle(ThreadId thread, std::int64_t count) { program_of(thread, Clock::now()).idle += count; }

void FlightRecorder::add_waiting(ThreadId thread, std::int64_t count) {
  program_of(thread, Clock::now()).waiting += count;
}

// What was written has names of its own: only what follows has other numbers.
void FlightRecorder::tables_renewed() { cut(); }

void FlightRecorder::look(const LoopCounts& counts) {
  const std::int64_t ticks = counts.ticks - std::exchange(ticks_, counts.ticks);
  if (open_ != nullptr) open_->ticks += ticks;
  bool is_wanted = false;
  {
    const std::lock_guard held(lock_);
    is_wanted = wanted_ > made_;
  }
  const bool is_due = open_ != nullptr && (Clock::now() - open_->began >= options_.keeps / part_count ||
                                           static_cast<std::size_t>(raw_.tellp()) > options_.most_bytes / part_count);
  if (is_due || is_wanted) cut();
}

void FlightRecorder::describe() {
  if (open_ == nullptr) return;
  for (auto& [key, program] : open_->programs) options_.describe(key, program.about);
}

void FlightRecorder::cut() {
  if (writer_ != nullptr) {
    describe();
    writer_->flush();
    writer_ = nullptr;
    open_->raw = std::move(raw_).str();
    open_->ended = Clock::now();
  }
  {
    const std::lock_guard held(lock_);
    if (open_ != nullptr) {
      bytes_ += open_->raw.size();
      kept_.push_back(std::move(open_));
    }
    drop_old();
    made_ = wanted_;
  }
  changed_.notify_all();
}

void FlightRecorder::drop_old() {
  const Clock::time_point oldest = Clock::now() - options_.keeps;
  const bool is_over = bytes_ > options_.most_bytes;
  while (!kept_.empty() && (kept_.front()->ended < oldest || bytes_ > options_.most_bytes)) {
    bytes_ -= kept_.front()->raw.size();
    kept_.pop_front();
  }
  // It is full until that much time fits again.
  is_full_ = is_over || (is_full_ && !kept_.empty() && kept_.front()->began > oldest + options_.keeps / part_count);
}

KeptParts FlightRecorder::parts() {
  constexpr std::chrono::seconds patience(1);
  std::unique_lock held(lock_);
  const std::int64_t mine = ++wanted_;
  (void)changed_.wait_for(held, patience, [&] { return made_ >= mine; });
  return {kept_.begin(), kept_.end()};
}

FlightRecorder::Size FlightRecorder::size() const {
  const std::lock_guard held(lock_);
  return {static_cast<std::int64_t>(bytes_), kept_.empty() ? Clock::duration() : Clock::now() - kept_.front()->began,
          is_full_};
}

}  // namespace luaspy
