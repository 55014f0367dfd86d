#include "stack/stack_namer.h"

#include <fmt/format.h>

#include <utility>

#include "luastate/call_frames.h"
#include "stack/start_frames.h"

namespace luaspy {
namespace {

// A trace is shown by its number and the place where it starts.
Frame name_trace(LuaInspector& lua, const ActiveState& activation, const Trace& trace, const LuaCall& start) {
  const Names::Context context{*activation.lua, activation.G, lua.names().memory()};
  const Frame place = lua.names().frame(context, start, nullptr, trace.start_pc + 4);
  return marker(fmt::format("[trace {} {}:{}]", trace.number, place.file, place.line));
}

FrameId name_native(LuaInspector& lua, const NativeFunctions& functions, const Walked& walked,
                    const NativeFrame& native, StackTable& stacks) {
  if (native.in_trace) {
    for (const RunningState& state : walked.on_thread()) {
      const Trace* const found = lua.trace_at(state.activation, native.lookup);
      if (found == nullptr) continue;
      const Trace trace = *found;
      LuaCall start;
      if (!lua.reader_of(state.activation).read_start(state.activation, trace, start)) break;
      return stacks.intern(name_trace(lua, state.activation, trace, start));
    }
  }
  return stacks.intern(functions.describe(native));
}

}  // namespace

// Outermost first: naming an outer function lets functions that begin on the same line in it be
// told apart.
StackId StackNamer::name(LuaInspector& lua, const NativeFunctions& functions, const Joined& joined,
                         const Memory& stopped) {
  static const Frame not_joined = marker("[native and Lua frames not joined]");
  const Walked& walked = joined.from.lua;
  frames_.clear();
  for (auto frame = joined.merged.frames.rbegin(); frame != joined.merged.frames.rend(); ++frame) {
    switch (frame->kind) {
      case MergedFrame::Kind::native:
        frames_.push_back(stacks_.with_part(
            name_native(lua, functions, walked, joined.from.natives[frame->native], stacks_), frame->part));
        break;
      case MergedFrame::Kind::not_joined:
        frames_.push_back(stacks_.intern(not_joined));
        break;
      case MergedFrame::Kind::left_out:
        frames_.push_back(stacks_.intern(marker(left_out_text(joined.state_of(*frame).walk, lua.counts_left_out()))));
        break;
      case MergedFrame::Kind::call: {
        const RunningState& state = joined.state_of(*frame);
        const LuaCall& call = state.walk.calls[frame->call];
        const std::span<const Frame> outside = markers_outside(call);
        for (auto each = outside.rbegin(); each != outside.rend(); ++each) frames_.push_back(stacks_.intern(*each));
        const Names::Context context{*state.activation.lua, state.activation.G, stopped};
        frames_.push_back(
            stacks_.intern(label_call(lua.names(), functions, context, call, state.walk.caller_of(frame->call),
                                      joined.calls[frames_.size()].pc)));
        break;
      }
    }
  }
  mark_start();
  StackId stack = empty_stack;
  for (const FrameId frame : frames_) stack = stacks_.intern({stack, frame});
  return stack;
}

void StackNamer::mark_start() {
  shown_.clear();
  for (const FrameId frame : frames_) shown_.push_back(&stacks_.frames()[frame]);
  const StartFrames start = start_frames(shown_);
  if (start.main_has_no_name) {
    Frame main = *shown_[start.count];
    main.name = "main";
    frames_[start.count] = stacks_.intern(main);
  }
  for (std::size_t i = 0; i < start.count; ++i) frames_[i] = stacks_.with_part(frames_[i], Frame::Part::start);
  if (start.interpreter)
    frames_[*start.interpreter] = stacks_.with_part(frames_[*start.interpreter], Frame::Part::start);
}

}  // namespace luaspy
