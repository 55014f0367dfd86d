#include "stack/one_stack.h"

#include <algorithm>

#include "luastate/call_frames.h"
#include "stack/vm_frames.h"

namespace luaspy {
namespace {

constexpr std::size_t most_natives = 8192;

bool add_entries(Unwinder& unwinder, const Walked& walked) {
  bool news = false;
  for (const Address entry : walked.c_entries()) news |= unwinder.add_entry(entry);
  return news;
}

void unwind(LuaInspector& lua, TargetMap& map, const LookMemory& look, Matched& matched) {
  Unwinder& unwinder = map.unwinder();
  const auto trace_of = [&](const NativeFrame& frame) -> VmFrames::CodeRange {
    if (const Trace* const trace = lua.trace_at(matched.lua, frame.lookup))
      return {trace->mcode, trace->mcode + trace->size};
    // Exit stubs and links between traces belong to no trace.
    if (frame.step == Step::registers && matched.lua.on_trace()) return {frame.lookup, frame.lookup + 1};
    return {};
  };
  const VmFrames rule(unwinder.machine(), map.modules(), map.functions(), matched.lua.vm_frames(),
                      matched.lua.on_trace(), trace_of);
  matched.natives.clear();
  matched.complete = unwinder.unwind(look.registers, look.stopped, &rule, matched.natives, most_natives) ==
                     Unwinder::End::root;
  // What was read may reach beyond the stack, into those of suspended fibers.
  matched.lua.drop_strangers(matched.natives.front().sp, matched.natives.back().sp, matched.complete);
  for (NativeFrame& frame : matched.natives) frame.in_trace = rule.in_trace(frame.lookup);
  lua.match_natives(matched.lua, matched.natives, map.functions(), look);
}

// In each luaV_execute frame except the innermost, the first call that it owns waits for a callee.
// Its saved pc is therefore exact.
void confirm_pcs(const LuaInspector& lua, const Joined& joined, const Memory& stopped) {
  std::size_t last = MergedFrame::no_native;
  bool innermost = true;
  for (const MergedFrame& frame : joined.merged.frames) {
    if (frame.kind != MergedFrame::Kind::call) continue;
    const RunningState& state = joined.state_of(frame);
    const LuaCall& call = state.walk.calls[frame.call];
    if (call.is_lua() && frame.native != MergedFrame::no_native && frame.native != last) {
      last = frame.native;
      if (!innermost) lua.reader_of(state.activation).confirm_pc(joined.from.natives[frame.native], call, stopped);
    }
    innermost = false;
  }
}

Address pc_of(LuaInspector& lua, const NativeFunctions& functions, const Joined& joined, const MergedFrame& frame,
              const Memory& stopped) {
  const RunningState& state = joined.state_of(frame);
  ExecutedCall call = {.state = state, .call = frame.call};
  call.innermost = frame.segment == 0 && frame.call == 0 && state.walk.innermost_dropped == 0;
  if (frame.native != MergedFrame::no_native) call.execute = &joined.from.natives[frame.native];
  call.is_top = frame.native == 0;
  return lua.reader_of(state.activation).pc(call, lua.names(), stopped, functions);
}

}  // namespace

Matched match(LuaInspector& lua, const NativeFunctions& functions, const LookMemory& look, Walked walked,
              std::vector<NativeFrame> natives) {
  Matched matched{std::move(walked), std::move(natives)};
  lua.match_natives(matched.lua, matched.natives, functions, look);
  return matched;
}

Matched match_by_unwinding(LuaInspector& lua, TargetMap& map, const LookMemory& look, Walked walked,
                           std::vector<NativeFrame> room) {
  Unwinder& unwinder = map.unwinder();
  Matched matched{std::move(walked), std::move(room)};
  add_entries(unwinder, matched.lua);
  unwind(lua, map, look, matched);
  // LuaJIT's C functions are known only now. Where code has no unwind tables, their entries show
  // where functions start.
  if (!add_entries(unwinder, matched.lua)) return matched;
  const auto is_guess = [](const NativeFrame& frame) { return frame.step == Step::code || frame.step == Step::scan; };
  if (std::ranges::any_of(matched.natives, is_guess)) unwind(lua, map, look, matched);
  else
    for (NativeFrame& frame : matched.natives) frame.function = unwinder.function(frame.lookup).start;
  return matched;
}

std::vector<Segment> segments_of(const Walked& walked, std::vector<Segment> room) {
  room.clear();
  for (const Walked::Part& part : walked.parts) room.push_back({&walked.states[part.state].walk, part.boundary});
  return room;
}

Joined join(LuaInspector& lua, const NativeFunctions& functions, Matched matched, const MergeOptions& merging,
            const Memory& stopped, Joined room) {
  Joined joined = std::move(room);
  joined.from = std::move(matched);
  joined.calls.clear();
  joined.segments = segments_of(joined.from.lua, std::move(joined.segments));
  joined.merged = merge(joined.from.natives, joined.segments, functions, merging, std::move(joined.merged));
  confirm_pcs(lua, joined, stopped);
  for (const MergedFrame& frame : joined.merged.frames) {
    StackCall& found = joined.calls.emplace_back();
    if (frame.kind != MergedFrame::Kind::call) continue;
    const RunningState& state = joined.state_of(frame);
    const LuaCall& call = state.walk.calls[frame.call];
    found = {&state.activation, &state.walk, frame.call,
             call.is_lua() ? pc_of(lua, functions, joined, frame, stopped) : 0};
    joined.calls.resize(joined.calls.size() + markers_outside(call).size());
  }
  std::ranges::reverse(joined.calls);
  return joined;
}

void judge(const Joined& joined, Quality& quality) {
  const Walked& walked = joined.from.lua;
  quality.unclaimed = walked.unclaimed;
  if (walked.running == 0) return;
  quality.with_lua = 1;
  bool broken = false, relocated = false;
  for (const RunningState& state : walked.on_thread()) {
    broken |= state.walk.end == LuaWalk::End::broken;
    relocated |= state.walk.relocated;
    quality.half_built += state.walk.innermost_dropped;
    quality.calls_dropped += state.walk.dropped;
  }
  const LuaWalk& innermost = walked.states[0].walk;
  quality.lua_broken = broken;
  quality.relocated = relocated;
  quality.lua_unusable = innermost.calls.empty() && innermost.end == LuaWalk::End::broken;
  quality.not_joined = !joined.merged.joined;
  quality.fresh_mismatch = joined.merged.execute_frames != joined.merged.fresh_calls;
}

}  // namespace luaspy
