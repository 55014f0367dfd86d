#pragma once
// A recording: samples counted by thread and stack, in the order of time too if that is asked for, with stacks and frames interned; and the
// losses by name. What it takes in memory depends on how many different stacks there are, not on how long it lasts, but for the order of
// time, which takes a few bytes a sample. A value: writers are functions of it.

#include <array>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "sample.h"
#include "timeline.h"

namespace luaspy {

class Profile {
 public:
  using FrameId = std::uint32_t;
  using StackId = std::uint32_t;

  struct Thread {
    int tid = 0;
    std::string name;
  };
  struct ThreadStack {
    std::uint32_t thread = 0;     // index into threads()
    StackId stack = 0;
    auto operator<=>(const ThreadStack&) const = default;
  };

  explicit Profile(bool keeps_order = true) : keeps_order_(keeps_order) {}

  // One tick of one thread. A sample that has a loss is counted under its name. `weight_ns`: real time since the tick before.
  void add(const Thread& thread, std::int64_t weight_ns, const Sample& sample);
  void add_loss(Loss loss, std::int64_t count = 1) { losses_[static_cast<std::size_t>(loss)] += count; }
  void add_idle() { ++idle_; }

  const std::vector<Thread>& threads() const { return threads_; }
  const std::vector<Frame>& frames() const { return frames_; }
  // The frames of a stack, outermost first.
  std::vector<FrameId> stack(StackId id) const;

  std::int64_t samples() const { return samples_; }
  const std::map<ThreadStack, std::int64_t>& counts() const { return counts_; }
  // Of a thread, by its index; empty if the profile does not keep the order. Its stacks are StackIds.
  const Timeline& timeline(std::size_t thread) const { return tracks_[thread].timeline; }

  std::int64_t losses(Loss loss) const { return losses_[static_cast<std::size_t>(loss)]; }
  std::int64_t total_losses() const;
  std::int64_t idle() const { return idle_; }   // ticks of sleeping threads that were not asked for
  std::int64_t samples_in(VmState state) const { return vm_states_[static_cast<std::size_t>(state)]; }
  const Quality& quality() const { return quality_; }

  // A Lua function is called by different names in different places (a global here, a local there). In a profile it has one:
  // the one it was seen under most often. Call once, before writing.
  void settle_names();

  struct Hot {
    Frame function;                // line: 0
    std::int64_t own = 0, total = 0;  // samples
  };
  // Functions by samples of their own, most first.
  std::vector<Hot> hottest() const;

  std::string target;              // the command, for headers
  std::int64_t duration_ns = 0;
  double rate = 0;                 // asked for, Hz

 private:
  // Stacks are a tree: each is another one, and a frame more. 0 is the empty one.
  struct Node {
    StackId outer = 0;
    FrameId frame = 0;
  };
  // Of each thread, what makes the next sample cheap: the last one mostly is the same or nearly so.
  struct Track {
    Timeline timeline;
    std::vector<StackId> last;   // the last sample's stack, outermost first: each frame's node
    VmState vm_state = VmState::none;
    Quality quality;
  };

  std::uint32_t index_of(const Thread& thread);
  FrameId intern(const Frame& frame);
  void intern(const Stack& stack, std::vector<StackId>& last);

  bool keeps_order_;
  std::vector<Frame> frames_;
  std::unordered_multimap<std::size_t, FrameId> frame_index_;   // by hash
  std::deque<Node> nodes_{1};
  std::unordered_map<std::uint64_t, StackId> node_index_;       // by outer and frame
  std::vector<Thread> threads_;
  std::deque<Track> tracks_;                                    // beside threads_
  std::unordered_map<int, std::uint32_t> thread_index_;         // by tid
  std::map<ThreadStack, std::int64_t> counts_;
  std::int64_t samples_ = 0;
  std::array<std::int64_t, loss_count> losses_{};
  std::array<std::int64_t, vm_state_count> vm_states_{};
  std::int64_t idle_ = 0;
  Quality quality_;
};

// How frames read in text: "name (file:line)" for Lua, "name (file)" for a main chunk, "name [C]" for a C function that Lua
// called, "name (module)" for other native ones. With `lines`, Lua frames show the current line ("~5" where it is
// the nearest one known), else the one of definition.
std::string describe(const Frame& frame, bool lines);

}  // namespace luaspy
