#include "stack/stack_namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "stack/plugin.h"
#include "stack/start_frames.h"

namespace luaspy {

// A program that makes functions without end must not fill memory.
void StackNamer::forget_what_changed(const Names& names, const NativeFunctions& functions) {
  constexpr std::size_t most = 1 << 16;
  const std::tuple now = {stacks_.identity(), functions.descriptions(), names.forgotten()};
  if (now == valid_for_ && calls_.size() < most && natives_.size() < most && traces_.size() < most) return;
  valid_for_ = now;
  natives_.clear(), calls_.clear(), traces_.clear(), mains_.clear(), coroutines_.clear(), plugins_.clear();
  last_.clear();
}

FrameId StackNamer::native(LuaInspector& lua, const NativeFunctions& functions, const Walked& walked,
                           const NativeFrame& native) {
  if (native.in_trace) {
    for (const RunningState& state : walked.on_thread()) {
      const Trace* const found = lua.trace_at(state.activation, native.lookup);
      if (found == nullptr) continue;
      if (const std::optional<FrameId> frame = trace(lua, state.activation, *found)) return *frame;
      break;
    }
    return stacks_.intern(functions.describe(native));
  }
  const auto [known, is_new] = natives_.try_emplace(native.function != 0 ? native.function : native.lookup);
  if (is_new) known->second = stacks_.intern(functions.describe(native));
  return known->second;
}

// A trace is shown by its number, the place where it starts, where that is from for a side trace, and its machine
// code's size.
std::optional<FrameId> StackNamer::trace(LuaInspector& lua, const ActiveState& state, const Trace& trace) {
  const TraceKey key = {state.G, trace.number, trace.mcode, trace.start_proto, trace.start_pc};
  if (const auto known = traces_.find(key); known != traces_.end()) return known->second;
  const auto& [G, number, mcode, start_proto, start_pc] = key;
  LuaCall start;
  if (!lua.reader_of(state).read_start(state, trace, start)) return std::nullopt;
  const CallLabel place = lua.names().label({*state.lua, G, lua.names().memory()}, start, nullptr, start_pc + 4);
  const TraceStart from = start_of(lua.names().memory(), trace);
  const std::string parent = from.parent == 0 ? "" : fmt::format(", from trace {} exit {}", from.parent, from.exit);
  return traces_[key] = stacks_.intern(
             marker(fmt::format("[trace {} {}:{}{}, {} bytes]", number, *place.file, place.line, parent, trace.size)));
}

FrameId StackNamer::call(const CallLabel& label, const NativeFunctions& functions) {
  const auto [known, is_new] = calls_.try_emplace(label);
  if (is_new) known->second = stacks_.intern(frame_of(label, functions));
  return known->second;
}

// Outermost first: naming an outer function lets functions that begin on the same line in it be
// told apart.
StackId StackNamer::name(LuaInspector& lua, const NativeFunctions& functions, const Joined& joined,
                         const Memory& stopped) {
  static const Frame not_joined = marker("[native and Lua frames not joined]");
  static const Frame left_out = marker(left_out_text({}, false));
  Names& names = lua.names();
  forget_what_changed(names, functions);
  frames_.clear(), begins_.clear();
  bool in_c_function = false;  // that Lua has called
  for (auto frame = joined.merged.frames.rbegin(); frame != joined.merged.frames.rend(); ++frame) {
    switch (frame->kind) {
      case MergedFrame::Kind::native:
        frames_.push_back(native_frame(lua, functions, joined, *frame, in_c_function));
        break;
      case MergedFrame::Kind::not_joined:
        frames_.push_back(stacks_.intern(not_joined));
        break;
      case MergedFrame::Kind::left_out:
        frames_.push_back(stacks_.intern(
            lua.counts_left_out() ? marker(left_out_text(joined.state_of(*frame).walk, true)) : left_out));
        break;
      case MergedFrame::Kind::call: {
        const RunningState& state = joined.state_of(*frame);
        const LuaCall& call = state.walk.calls[frame->call];
        const std::span<const Frame> outside = markers_outside(call);
        for (auto each = outside.rbegin(); each != outside.rend(); ++each) frames_.push_back(stacks_.intern(*each));
        const CallLabel label = label_call(names, functions, {*state.activation.lua, state.activation.G, stopped}, call,
                                           state.walk.caller_of(frame->call), joined.calls[frames_.size()].pc);
        forget_what_changed(names, functions);
        if (labels_ != nullptr) begins_.emplace_back(joined.from.lua.parts[frame->segment].state, frames_.size());
        frames_.push_back(this->call(label, functions));
        in_c_function = !call.is_lua();
        break;
      }
    }
  }
  coroutine_ = coroutine_of(lua, joined);
  plugin_ = plugin_of_stack();
  return intern();
}

// Where its state was entered first: a C function that the coroutine calls may call Lua again.
LabelsId StackNamer::coroutine_of(LuaInspector& lua, const Joined& joined) {
  if (begins_.empty()) return no_labels;
  const std::size_t state = begins_.back().first;
  const auto begin = std::ranges::find(begins_, state, &std::pair<std::size_t, std::size_t>::first);
  const ActiveState& active = joined.from.lua.states[state].activation;
  // It is read after the stop, and cannot be once the process has ended. It never changes.
  const Address read = active.lua->main_thread(lua.names().memory(), active.G);
  Address& main = main_threads_[active.G];
  if (read != 0) main = read;
  if (main == 0) return no_labels;
  const bool is_main = active.L == main;
  const FrameId frame = frames_[begin->second];
  const auto [known, is_new] = coroutines_.try_emplace(is_main ? std::nullopt : std::optional(frame));
  if (is_new) {
    std::string value = is_main ? std::string(main_coroutine) : describe(stacks_.frames()[frame], false);
    known->second = labels_->intern({{std::string(coroutine_label), std::move(value)}});
  }
  return known->second;
}

std::string_view StackNamer::plugin_of_stack() {
  if (!has_plugins_) return {};
  for (auto id = frames_.rbegin(); id != frames_.rend(); ++id) {
    const auto [known, is_new] = plugins_.try_emplace(*id);
    const Frame& frame = stacks_.frames()[*id];
    if (is_new && frame.kind == Frame::Kind::lua) known->second = plugin_of(frame.file);
    if (!known->second.empty()) return known->second;
  }
  return {};
}

// What a C function does in functions that have no name is its own work to whoever has written the Lua: they are
// details, as the VM's are.
FrameId StackNamer::native_frame(LuaInspector& lua, const NativeFunctions& functions, const Joined& joined,
                                 const MergedFrame& frame, bool in_c_function) {
  const FrameId id = native(lua, functions, joined.from.lua, joined.from.natives[frame.native]);
  const bool is_detail = in_c_function && frame.part == Frame::Part::program && is_place(stacks_.frames()[id]);
  return stacks_.with_part(id, is_detail ? Frame::Part::vm : frame.part);
}

// Of the outermost frames, those that decide on the start of the process, as they are shown.
void StackNamer::mark_start() {
  shown_.clear();
  for (const FrameId frame : frames_) shown_.push_back(&stacks_.frames()[frame]);
  const StartFrames start = start_frames(shown_);
  decided_by_ = start.decided_by;
  const std::span<const FrameId> decisive = std::span(frames_).first(std::min(decided_by_, frames_.size()));
  start_.assign(decisive.begin(), decisive.end());
  if (start.main_has_no_name) {
    const auto [known, is_new] = mains_.try_emplace(start_[start.count]);
    if (is_new) {
      Frame main = *shown_[start.count];
      main.name = "main";
      known->second = stacks_.intern(main);
    }
    start_[start.count] = known->second;
  }
  for (std::size_t i = 0; i < start.count; ++i) start_[i] = stacks_.with_part(start_[i], Frame::Part::start);
  if (start.interpreter) start_[*start.interpreter] = stacks_.with_part(start_[*start.interpreter], Frame::Part::start);
}

StackId StackNamer::intern() {
  auto same = static_cast<std::size_t>(std::ranges::mismatch(frames_, last_).in1 - frames_.begin());
  if (same == 0 || same < decided_by_) mark_start(), same = 0;
  stacks_of_last_.resize(same);
  StackId stack = same != 0 ? stacks_of_last_.back() : empty_stack;
  for (std::size_t i = same; i < frames_.size(); ++i) {
    stack = stacks_.intern({stack, i < start_.size() ? start_[i] : frames_[i]});
    stacks_of_last_.push_back(stack);
  }
  std::swap(last_, frames_);
  return stack;
}

}  // namespace luaspy
