#pragma once
// Collects what the sampling loop finds in a profile, and writes it to a raw recording at once if
// there is one.

#include <memory>
#include <optional>

#include "events/event_tables.h"
#include "events/mark.h"
#include "output/raw.h"
#include "profile/profile_builder.h"
#include "profile/suspended_profile.h"
#include "profile/suspended_tracks.h"
#include "sampling/sample_sink.h"

namespace luaspy {

class Recording : public SampleSink {
 public:
  // `tables`: what the numbers of samples stand for; they must outlive it. `keeps_order`: see Profile.
  Recording(const EventTables& tables, const ViewOptions& shape, bool keeps_order);

  // From now on, everything is also written to `out`, including lines. `out` must outlive the
  // recording.
  void write_raw(std::ostream& out);

  void add(ThreadId thread, const Tick& tick, const Sample& sample) override;
  void add_idle(ThreadId thread, std::int64_t count) override;
  void add_waiting(ThreadId thread, std::int64_t count) override;
  void add_loss(Loss loss, std::int64_t count) override;
  void end(int pid, const Tick& tick) override;

  // Allocations can be added from now on, to a recording of time. They make a profile of bytes of
  // their own, in that shape, and are in the raw recording.
  void keep_allocations(const ViewOptions& shape);
  void add_allocation(ThreadId thread, const RawWriter::Allocation& allocation, const Sample& sample);
  // The same for suspended coroutines.
  void keep_suspended(const ViewOptions& shape);
  void add_suspended(const SuspendedLook& look) override;
  const Profile* suspended() const { return suspended_ ? &suspended_->profile() : nullptr; }
  const Profile* allocations() const { return allocated_ ? &allocated_->profile() : nullptr; }

  const Profile& profile() const { return built_.profile(); }
  // When no more samples come.
  void finish() {
    built_.finish();
    if (suspended_) suspended_->finish();
  }
  void resolve_names();
  // What has happened besides samples. No more than most_marks are kept.
  void add_mark(Mark mark);
  // The text of a Lua file of the target.
  void add_source(const std::string& file, Profile::Source source);
  // Withdraws it.
  void drop_source(const std::string& file);
  // Sets what is known about the target by now, and flushes the raw recording.
  void set_metadata(const Metadata& about);

 protected:
  // A sample of a thread was counted, with a stack of the profile.
  virtual void counted(const ThreadInfo&, StackId) {}

 private:
  void count_heap(const Tick& tick, const HeapChange& change);

  const EventTables& tables_;
  ProfileBuilder built_;
  HeapChanges heaps_;
  std::unique_ptr<ProfileBuilder> allocated_;
  std::unique_ptr<SuspendedProfile> suspended_;
  std::optional<SuspendedTracks> tracks_;  // with ViewOptions::tracks
  std::unique_ptr<RawWriter> raw_;
};

}  // namespace luaspy
