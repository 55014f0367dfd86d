#pragma once
// What PUC's innermost call is while it is being set up or torn down, and whether the collector
// works inside of it. The native frames show both.

#include "luastate/native_functions.h"
#include "luastate/puc/live_pc.h"
#include "luastate/running.h"

namespace luaspy {

// Sets the walk's `innermost_left_out`, or marks its innermost call as a tail call. `stack`: what
// the stop read. `live`: the memory as it is now, for code. `live_pc` learns from it.
void correct_innermost_call(RunningState& state, LivePc& live_pc, const std::vector<NativeFrame>& natives,
                            const NativeFunctions& functions, const Memory& stack, const Memory& live);

// Is a frame of the collector further in than the frame of the innermost call? A collector frame
// that is further out has called a finalizer.
bool collects_garbage(const RunningState& state, const std::vector<NativeFrame>& natives,
                      const NativeFunctions& functions);

}  // namespace luaspy
