#pragma once
// Processing a look after the thread runs again. Each step makes a new value from the previous one:
//
//   Located ──▶ Walked ──▶ Matched ──▶ Joined ──▶ Stack
//   which       their      with the    one        with
//   states      calls      native      stack      names
//   (luastate/running.h)   frames
//
// The sampler, core files, saved stops and the fuzzers all use these steps.

#include "base/sample.h"
#include "luastate/lua_inspector.h"
#include "stack/merge.h"
#include "stack/target_map.h"

namespace luaspy {

// The states with their calls, and the native frames (innermost first) that the calls were matched
// with.
struct Matched {
  Walked lua;
  std::vector<NativeFrame> natives;
  bool complete = false;  // the native frames reach the thread's first function
};

// For native frames that are already known.
Matched match(LuaInspector& lua, const NativeFunctions& functions, const LookMemory& look, Walked walked,
              std::vector<NativeFrame> natives);
// Unwinds the native frames first. Code without a file may belong to a trace: when the unwinder
// reaches such code, `lua` is asked for the trace, which says how to continue. `room`: a vector
// whose memory is reused.
Matched match_by_unwinding(LuaInspector& lua, TargetMap& map, const LookMemory& look, Walked walked,
                           std::vector<NativeFrame> room = {});

// The call behind a frame of the stack. `state` is nullptr for a frame that is no call.
struct StackCall {
  const ActiveState* state = nullptr;
  const LuaWalk* walk = nullptr;
  std::size_t call = 0;  // index into walk->calls
  Address pc = 0;        // Lua: the next instruction
};

struct Joined {
  Matched from;
  Merged merged;
  // One for each frame of the stack, outermost first. They refer to `from` and stay valid when it
  // is moved.
  std::vector<StackCall> calls;
  std::vector<Segment> segments;  // what was merged

  // The state that the call of a merged frame belongs to.
  const RunningState& state_of(const MergedFrame& frame) const {
    return from.lua.states[from.lua.parts[frame.segment].state];
  }
};

// The calls of the states, in the form merge() takes. They refer to `walked`.
std::vector<Segment> segments_of(const Walked& walked, std::vector<Segment> room = {});

// `stopped`: the memory that was read in the stop. `room`: a value whose memory, but for that of `from`, is reused.
Joined join(LuaInspector& lua, const NativeFunctions& functions, Matched matched, const MergeOptions& merging,
            const Memory& stopped, Joined room = {});
// Adds what the walks found to `quality`.
void judge(const Joined& joined, Quality& quality);
}  // namespace luaspy
