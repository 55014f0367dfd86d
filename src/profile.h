#pragma once
// A recording: samples in the order of time, with stacks and frames interned, and the losses by name. A value: writers are
// functions of it.

#include <array>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sample.h"

namespace luaspy {

class Profile {
 public:
  using FrameId = std::uint32_t;
  using StackId = std::uint32_t;

  struct Thread {
    int tid = 0;
    std::string name;
  };
  struct Entry {
    std::int64_t time_ns = 0;     // since the recording's start
    std::int64_t weight_ns = 0;   // real time since the tick before
    std::uint32_t thread = 0;     // index into threads()
    StackId stack = 0;
  };

  // One tick of one thread. A sample that has a loss is counted under its name.
  void add(const Thread& thread, std::int64_t time_ns, std::int64_t weight_ns, const Sample& sample);
  void add_loss(Loss loss, std::int64_t count = 1) { losses_[static_cast<std::size_t>(loss)] += count; }
  void add_idle() { ++idle_; }

  const std::vector<Thread>& threads() const { return threads_; }
  const std::vector<Frame>& frames() const { return frames_; }
  // The frames of a stack, outermost first.
  std::span<const FrameId> stack(StackId id) const;
  std::size_t stack_count() const { return stack_starts_.size(); }
  const std::vector<Entry>& entries() const { return entries_; }

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
  FrameId intern(const Frame& frame);
  StackId intern(const Stack& stack);

  std::vector<Frame> frames_;
  std::unordered_multimap<std::size_t, FrameId> frame_index_;   // by hash
  std::vector<FrameId> stack_frames_;
  std::vector<std::size_t> stack_starts_;                       // into stack_frames_
  std::unordered_multimap<std::size_t, StackId> stack_index_;   // by hash
  std::vector<Thread> threads_;
  std::vector<Entry> entries_;
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
