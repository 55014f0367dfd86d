#pragma once
// Writes a part of a raw recording as a raw recording.

#include <memory>
#include <ostream>

#include "input/recording_events.h"
#include "output/raw.h"

namespace luaspy {

class RawPart : public RawEvents {
 public:
  // `out` must outlive it. `has_suspended`: with looks at suspended coroutines.
  RawPart(std::ostream& out, bool has_suspended) : out_(out), has_suspended_(has_suspended) {}

  void begin(const EventTables& tables, Unit unit) override {
    writer_ = std::make_unique<RawWriter>(tables, unit, out_);
  }
  void sample(ThreadId thread, const Tick& tick, const Sample& sample) override {
    written_ += tick.samples;
    if (has_too_many()) return;
    const std::int64_t each = tick.weight / tick.samples, more = tick.weight % tick.samples;
    for (std::int64_t i = 0; i < tick.samples; ++i)
      writer_->sample(thread, {tick.at_ns, each + (i < more ? 1 : 0)}, sample);
  }
  void lost(ThreadId thread, const Tick& tick, Loss loss, std::int64_t stopped_ns) override {
    writer_->lost(thread, tick, loss, stopped_ns);
  }
  void allocation(ThreadId thread, std::int64_t at_ns, std::int64_t bytes, std::int64_t objects,
                  const Sample& sample) override {
    writer_->allocation(thread, {at_ns, bytes, objects}, sample);
  }
  void loss(Loss loss, std::int64_t count) override { writer_->loss(loss, count); }
  void idle(std::int64_t count) override { writer_->idle(count); }
  void waiting(std::int64_t count) override { writer_->waiting(count); }
  void state(const HeapChanges::State& state) override { writer_->state(state); }
  void heap(const Tick& tick, const HeapChange& change) override { writer_->heap(tick, change); }
  void mark(const Mark& mark) override { writer_->mark(mark); }
  void suspended(const SuspendedLook& look) override {
    if (has_suspended_) writer_->suspended(look);
  }
  void end(const Profile& profile) override {
    for (const auto& [file, source] : profile.sources) writer_->source(file, source);
    writer_->about(profile.about);
    writer_->flush();
  }

  // A recording has each sample; a file that counts may say that there were any number.
  bool has_too_many() const { return written_ > most_samples; }
  static constexpr std::int64_t most_samples = 10'000'000;

 private:
  std::ostream& out_;
  bool has_suspended_;
  std::int64_t written_ = 0;
  std::unique_ptr<RawWriter> writer_;
};

}  // namespace luaspy
