#pragma once
// What PUC's innermost call is in the instructions where it is set up or torn down, and whether the
// collector is at work inside of it: told by the native frames.

#include "luastate/native_functions.h"
#include "luastate/puc/live_pc.h"
#include "luastate/running.h"

namespace luaspy {

// Sets `innermost_left_out` of the walk, or that its innermost call is a tail call. `stack`: what
// was read in the stop. `live`: the memory as it is now, for code. `live_pc` learns of it.
void settle_innermost_call(RunningState& state, LivePc& live_pc, const std::vector<NativeFrame>& natives,
                           const NativeFunctions& functions, const Memory& stack, const Memory& live);

// Is a frame of the collector further in than that of the innermost call? Further out, it has
// called a finalizer.
bool collects_garbage(const RunningState& state, const std::vector<NativeFrame>& natives,
                      const NativeFunctions& functions);

}  // namespace luaspy
