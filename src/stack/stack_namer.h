#pragma once
// Names the frames of a joined stack. A look that finds a stack again makes no text and allocates nothing: its frames
// are known by the numbers that they are made of, and the stack is a number of a table.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/label_table.h"
#include "events/stack_table.h"
#include "luastate/call_frames.h"
#include "stack/one_stack.h"

namespace luaspy {

// The value of coroutine_label for the main thread of a Lua.
inline constexpr std::string_view main_coroutine = "(main)";

class StackNamer {
 public:
  // `stacks` must outlive it.
  explicit StackNamer(StackTable& stacks) : stacks_(stacks) {}

  // This may read the symbols of a big program, so no thread should be stopped meanwhile. `lua`, `functions`: always
  // the same. `stopped`: the memory that was read in the stop.
  StackId name(LuaInspector& lua, const NativeFunctions& functions, const Joined& joined, const Memory& stopped);

  // From now on, name() also tells in which coroutine that was, as a label of these.
  void label_coroutines(LabelTable& labels) { labels_ = &labels; }
  // Of the last stack: the function with which the coroutine began that ran innermost, or "(main)" for the main thread
  // of its Lua; no_labels: no Lua ran, or nobody wants to know.
  LabelsId coroutine() const { return coroutine_; }

  // From now on, name() also tells which plugin that was.
  void label_plugins() { has_plugins_ = true; }
  // Of the last stack: that of the innermost function that belongs to one; "": none does, or nobody wants to know.
  std::string_view plugin() const { return plugin_; }

  StackTable& stacks() { return stacks_; }

 private:
  // A trace, and where it starts.
  using TraceKey = std::tuple<Address, unsigned, Address, Address, Address>;

  void forget_what_changed(const Names& names, const NativeFunctions& functions);
  FrameId native(LuaInspector& lua, const NativeFunctions& functions, const Walked& walked, const NativeFrame& native);
  FrameId native_frame(LuaInspector& lua, const NativeFunctions& functions, const Joined& joined,
                       const MergedFrame& frame, bool in_c_function);
  std::optional<FrameId> trace(LuaInspector& lua, const ActiveState& state, const Trace& trace);
  FrameId call(const CallLabel& label, const NativeFunctions& functions);
  LabelsId coroutine_of(LuaInspector& lua, const Joined& joined);
  std::string_view plugin_of_stack();
  void mark_start();
  StackId intern();

  StackTable& stacks_;
  LabelTable* labels_ = nullptr;
  LabelsId coroutine_ = no_labels;
  bool has_plugins_ = false;
  std::string_view plugin_;
  // The frames that are known. What they are valid for: identity of the table, NativeFunctions::descriptions(),
  // Names::forgotten().
  std::unordered_map<Address, FrameId> natives_;  // by the function's start, or by the address if that is not known
  std::unordered_map<CallLabel, FrameId, CallLabel::Hash> calls_;
  std::map<TraceKey, FrameId> traces_;
  std::map<std::optional<FrameId>, LabelsId> coroutines_;  // by the frame with which they began; nullopt: the main
                                                           // thread
  std::unordered_map<FrameId, std::string> plugins_;       // "": it belongs to none
  std::map<Address, Address> main_threads_;                // by global_State
  std::map<FrameId, FrameId> mains_;  // main() that has no symbol: its frame, and the same with its name
  std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> valid_for_;
  // Of this stack and of the last one, outermost first. The last one's frames at the start of the process as they
  // are shown, and the number of the stack that each of its frames ends: what is the same again need not be looked up.
  std::vector<FrameId> frames_, last_, start_;
  std::vector<StackId> stacks_of_last_;
  std::size_t decided_by_ = 0;                               // StartFrames::decided_by of it
  std::vector<std::pair<std::size_t, std::size_t>> begins_;  // of this stack, outermost first: its states, by number in
                                                             // Walked::states, and where in frames_ each begins
  std::vector<const Frame*> shown_;                          // kept for its memory
};

}  // namespace luaspy
