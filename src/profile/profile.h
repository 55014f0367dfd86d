#pragma once
// A recording: samples counted by thread and stack, optionally also in the order of time, with
// interned stacks and frames; and the losses by name. Its size in memory depends on the number of
// different stacks, not on its duration, except that the order of time takes a few bytes per
// sample. Heaps are not of a thread, so no choice of samples leaves them out. It is a value:
// writers are functions of it.

#include <array>
#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/doubts.h"
#include "base/sample.h"
#include "events/label_table.h"
#include "events/mark.h"
#include "events/stack_table.h"
#include "events/thread_table.h"
#include "profile/heap_track.h"
#include "profile/stop_times.h"
#include "profile/suspended_counts.h"
#include "profile/timeline.h"

namespace luaspy {

// Describes a recording, for headers.
struct Metadata {
  std::string luaspy;      // the version that recorded
  std::string command;     // the target's
  std::string executable;  // its path
  std::int64_t pid = 0;
  std::vector<std::string> luas;  // from LuaInspector::layout_names()
  bool lua_mapped = false;        // a file with a Lua core that luaspy can read is mapped, even if no state was seen
  std::string mode = "merged";    // RecordOptions::mode
  double rate = 0;                // asked for, Hz
  double max_stopped = 10;        // RecordOptions::max_stopped
  std::int64_t started_s = 0;     // since 1970
  std::int64_t duration_ns = 0;
  std::int64_t ticks = 0;
  bool complete = false;            // the recording was ended, not cut off
  CpuUse cpu;                       // of the processes that were looked at, and of those that they have started
  std::int64_t sampled_cpu_ns = 0;  // LoopCounts::sampled_cpu_ns
  Unit unit = Unit::nanoseconds;    // of all weights; set before the first sample is added
  std::int64_t allocations = 0;     // samples of these that the recording has besides those of time
  std::int64_t sampled_ns = 0;      // how long it took samples of this unit; 0: all of duration_ns
  std::string kind;                 // of a file that is no recording of luaspy: "folded stacks"
  bool timed = true;                // it says when its samples were; else only how many there were
  std::string torn;                 // where the file is damaged, and how: "line 5: no number at its end"

  std::int64_t looked_ns() const { return sampled_ns != 0 ? sampled_ns : duration_ns; }
  // What the weights of samples are of: pauses are charged to samples of time (Profile::charge_pauses()).
  std::int64_t weighed_ns() const { return unit == Unit::nanoseconds ? duration_ns : looked_ns(); }
};

class Profile {
 public:
  using SituationId = std::uint32_t;

  // What a thread was found doing.
  struct Situation : Attributes {
    StackId stack = empty_stack;
    auto operator<=>(const Situation&) const = default;
  };
  struct ThreadSituation {
    std::uint32_t thread = 0;  // index into threads()
    SituationId situation = 0;
    auto operator<=>(const ThreadSituation&) const = default;
  };
  struct Amount {
    std::int64_t samples = 0, weight = 0;  // weight: in about.unit
    double squares = 0;                    // the sum of the squares of the samples' weights
    Amount& operator+=(const Amount& other);
  };

  // `keeps_cpus`: samples of one stack on different CPUs are counted apart; else Attributes::cpu is left out.
  explicit Profile(bool keeps_order = true, bool keeps_cpus = false)
      : keeps_order_(keeps_order), keeps_cpus_(keeps_cpus) {}
  Profile(Profile&&) = default;
  Profile& operator=(Profile&&) = default;

  // One tick of one thread: a sample without a loss, whose stack is one of stacks(), and whose labels are of labels().
  void add(std::uint32_t thread, const Tick& tick, const Sample& sample) { add(thread, tick, sample, sample.stack); }
  // The same with this stack instead of the sample's.
  void add(std::uint32_t thread, const Tick& tick, const Sample& sample, StackId stack);
  // A thread's number, which it gets the first time.
  std::uint32_t index_of(const ThreadInfo& thread);
  // One tick of one thread without a sample, for which it may have been stopped.
  void add_lost(Loss loss, std::int64_t stopped_ns);
  void add_loss(Loss loss, std::int64_t count = 1) { losses_[static_cast<std::size_t>(loss)] += count; }
  void add_idle(std::int64_t count = 1) { idle_ += count; }
  void add_waiting(std::int64_t count) { waiting_ += count; }

  const std::vector<ThreadInfo>& threads() const { return threads_; }
  // By FrameId; with settled names, or as show_as() says, if that was called since the last sample.
  const StackTable::Frames& frames() const {
    return settled_.size() == stacks_.frames().size() ? settled_ : stacks_.frames();
  }
  // The frames of a stack, outermost first.
  std::vector<FrameId> stack(StackId id) const { return stacks_.ids_of(id); }
  const StackTable& stacks() const { return stacks_; }
  StackTable& stacks() { return stacks_; }
  // Those of its situations.
  const LabelTable& labels() const { return labels_; }
  LabelTable& labels() { return labels_; }
  const std::vector<Situation>& situations() const { return situations_; }  // by SituationId

  std::int64_t samples() const { return samples_; }
  std::int64_t weight() const;  // of all samples, in about.unit
  const std::map<ThreadSituation, Amount>& counts() const { return counts_; }
  // Under which the last sample was counted.
  const ThreadSituation& last() const { return last_; }
  // The same by stack only, of one thread (its index) or all.
  std::map<StackId, Amount> stack_counts(std::optional<std::uint32_t> thread = {}) const;
  // The timeline of the thread with this index; empty if the profile does not keep the order.
  const Timeline& timeline(std::size_t thread) const { return tracks_[thread].timeline; }

  const LossCounts& losses() const { return losses_; }
  std::int64_t losses(Loss loss) const { return losses_[static_cast<std::size_t>(loss)]; }
  std::int64_t total_losses() const;
  std::int64_t idle() const { return idle_; }  // ticks of sleeping threads that were not to be recorded
  // The threads that leave_out_sleepers() has left out, and their idle ticks.
  struct Sleepers {
    std::int64_t threads = 0, ticks = 0;
  };
  const Sleepers& sleepers() const { return sleepers_; }
  // Ticks of threads that could have run but had no CPU, including those that are samples.
  std::int64_t waiting() const { return waiting_; }
  std::int64_t samples_in(VmState state) const { return vm_states_[static_cast<std::size_t>(state)]; }
  const Quality& quality() const { return quality_; }
  const StopTimes& stops() const { return stops_; }

  // If samples of some threads found these running, or waiting for a CPU, those of threads that were only seen asleep
  // become idle ticks: they would outnumber the others. Call when no more samples come.
  void leave_out_sleepers();

  // Adds what another profile of the same unit has counted; not its order of time, nor its heaps, whose times are its
  // own. Its threads are others than those that are there, unless
  // they began at the same time with the same number. `root`: a frame around its stacks. `about` says the sums.
  void add_all(const Profile& other, const std::optional<Frame>& root);

  // A Lua function is called by different names in different places (a global here, a local there).
  // In a profile it has one name: where it lives (Frame::own_name), else the most frequent one.
  // Several functions that live in different places may be of one prototype; each keeps its name
  // then. Functions that begin on the same line and have the same name are numbered. Call before
  // writing.
  void resolve_names();
  // Shows other frames than those that were added: one for each of stacks().frames(), by its number.
  void show_as(StackTable::Frames frames) { settled_ = std::move(frames); }

  // If `about` says that there were pauses without samples of time (Metadata::sampled_ns), the time of each sample
  // stands for its part of them, too: they come at random. All weights are charged so, those of later samples as well;
  // timelines stay as they were seen. Call when `about` is known, and again when it has changed.
  void charge_pauses();
  double charged() const { return charged_; }  // by how much: 1 without pauses

  // The facts from which doubts are derived (doubts.h).
  DoubtFacts doubt_facts() const;

  Metadata about;
  // The text of Lua files that the recording carries, by Frame::file.
  struct Source {
    std::string text;
    bool changed = false;  // written after the process had started, so what ran may differ
  };
  std::map<std::string, Source> sources;
  HeapTracks heaps;
  std::vector<Mark> marks;  // at most most_marks; add_all() leaves those of others out
  // With ViewOptions::tracks: of suspended coroutines, at most most_tracks.
  std::vector<SuspendedTrack> tracks;
  std::vector<RequestWaits> request_waits;  // the same, of slow requests
  static constexpr std::size_t most_tracks = 1 << 12;
  // The suspended coroutines of the recording, if these were looked at (SuspendedProfile); add_all() leaves them out.
  std::shared_ptr<Profile> waits;
  SuspendedCounts suspended;  // of a profile of suspended coroutines only

 private:
  // Kept per thread to make the next sample cheap: it is usually equal or similar to the last one.
  struct Track {
    Timeline timeline;
    ThreadSituation at;
    Amount* amount = nullptr;  // counts_[at]
    // Of all its samples.
    Quality quality;
    std::array<std::int64_t, vm_state_count> vm_states{};
  };

  SituationId intern(const Situation& situation);
  void leave_out(std::uint32_t thread);
  void add_metadata(const Metadata& other);

  bool keeps_order_, keeps_cpus_;
  StackTable stacks_;
  LabelTable labels_;
  StackTable::Frames settled_;
  std::vector<Situation> situations_;
  std::map<Situation, SituationId> situation_index_;
  std::vector<ThreadInfo> threads_;
  std::deque<Track> tracks_;  // parallel to threads_
  std::unordered_map<ThreadKey, std::uint32_t, ThreadKey::Hash> thread_index_;
  std::map<ThreadSituation, Amount> counts_;
  ThreadSituation last_;
  std::int64_t samples_ = 0;
  double charged_ = 1;
  std::uint64_t added_ = 0;  // profiles, by add_all()
  LossCounts losses_{};
  std::array<std::int64_t, vm_state_count> vm_states_{};
  std::int64_t idle_ = 0, waiting_ = 0;
  Sleepers sleepers_;
  Quality quality_;
  StopTimes stops_;
};

}  // namespace luaspy
