#pragma once
// The part of a recording that is asked for, while a reader goes through the file: counted as a profile, and passed on
// as events. Readers of all kinds of files report what they read to it, in the order of time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "input/recording_events.h"
#include "profile/profile_builder.h"
#include "profile/stack_view.h"
#include "profile/suspended_profile.h"
#include "profile/suspended_tracks.h"

namespace luaspy {

// What readers believe of a file: bytes of a frame's name, bytes of all of them, threads.
inline constexpr std::size_t longest_name = 1 << 12, most_text = 1 << 27, most_threads = 1 << 17;

class RecordingPart {
 public:
  // `window` must outlive it. `keeps_order`: see Profile. `events`: or nullptr.
  RecordingPart(const ViewOptions& shape, const RawWindow& window, bool keeps_order, RawEvents* events);

  // What the numbers of frames and stacks stand for, as recorded.
  EventTables& tables() { return tables_; }
  Metadata& about() { return profile_.about; }
  std::map<std::string, Profile::Source>& sources() { return profile_.sources; }
  ThreadId thread(const ThreadInfo& thread);

  // Which allocations are asked for; nullopt: what the recording counts.
  std::optional<Unit> asked_for() const { return window_.allocations; }

  bool wants_live() const { return window_.live; }

  // The unit of the recording, before the first sample.
  void count(Unit unit);

  // Everything below returns false if the numbers of the file cannot be: nothing of it was counted then.

  // The next tick, `passed` ns after the last one; its samples have this weight, and stand for so many samples.
  bool tick(std::int64_t passed, std::int64_t weight, std::int64_t samples = 1);
  bool sample(ThreadId thread, const Sample& sample);
  bool lost(ThreadId thread, Loss loss, std::int64_t stopped_ns);
  // `passed`: ns after the last tick.
  bool allocation(ThreadId thread, std::int64_t passed, std::int64_t bytes, std::int64_t objects, const Sample& sample);
  void loss(Loss loss, std::int64_t count);
  void idle(std::int64_t count);
  void waiting(std::int64_t count);
  // States are numbered from 0.
  bool state(const HeapChanges::State& state);
  // `change`: of the size, in bytes.
  bool heap(std::uint32_t state, std::int64_t change, CollectorPhase phase, bool collected);

  void mark(Mark mark);
  bool suspended(SuspendedLook look);

  // The recording has said how many ticks it had until now.
  void forget_ticks() { ticks_ = 0; }
  std::size_t heaps() const { return heaps_.size(); }

  // `whole`: the file was read to its end.
  Profile finish(bool whole);

 private:
  // A global_State. What was before the window is shown at its beginning.
  struct KnownHeap {
    HeapChanges::State state;
    std::optional<std::uint32_t> index;  // in the profile
    std::optional<HeapChange> before;
    std::int64_t bytes = 0;
  };

  void add(ThreadId thread, const Tick& at, const Sample& sample);
  void add(KnownHeap& known, std::int64_t at_ns, HeapChange change);
  void begin_window();
  Profile finish_suspended();
  bool add_up(std::int64_t number);
  RawEvents* events();
  Tick of_window(const Tick& tick) const { return {tick.at_ns - window_.from_ns, tick.weight, tick.samples}; }
  bool is_in_window() const { return is_in_window(tick_.at_ns); }
  bool is_in_window(std::int64_t at_ns) const {
    return at_ns >= window_.from_ns && (!window_.to_ns || at_ns <= *window_.to_ns);
  }
  // What was counted at this tick is asked for.
  bool counts() const { return !takes_allocations_ && is_in_window(); }

  const RawWindow& window_;
  RawEvents* events_;
  bool events_begun_ = false, takes_allocations_ = false;
  Unit unit_ = Unit::nanoseconds;  // of the file
  Mode mode_;
  EventTables tables_;
  ById<ThreadId, bool> is_asked_for_;
  std::vector<KnownHeap> heaps_;
  Tick tick_;
  // ticks_: of which the file has not said since that there were so many; a whole recording needs none. Several
  // threads' records may be of one tick, so their number is not that of the ticks.
  std::int64_t ticks_ = 0, sum_ = 0;  // sum_: of stop times and weights
  ProfileBuilder built_;
  ProfileBuilder built_of_allocations_;  // for `events_`: which of them --only and --ignore leave
  SuspendedProfile suspended_;
  std::optional<SuspendedTracks> tracks_;  // with ViewOptions::tracks
  Profile& profile_ = built_.profile();
};

}  // namespace luaspy
