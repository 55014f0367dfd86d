#pragma once
// What becomes of a look once the thread runs again, step by step, each a value made of the one
// before:
//
//   Located ──▶ Walked ──▶ Matched ──▶ Joined ──▶ Stack
//   which       their      with the    one        with
//   states      calls      native      stack      names
//   (luastate/running.h)   frames
//
// The sampler, core files, saved stops and the fuzzers all take this way.

#include "base/sample.h"
#include "luastate/lua_reader.h"
#include "stack/merge.h"
#include "stack/native_code.h"

namespace luaspy {

// The states with their calls, and the native frames, innermost first, that they are settled by.
struct Matched {
  Walked lua;
  std::vector<NativeFrame> natives;
  bool complete = false;  // the native frames reach the thread's first function
};

// By native frames that are known already.
Matched match(LuaReader& lua, const NativeFunctions& functions, const LookMemory& look, Walked walked,
              std::vector<NativeFrame> natives);
// By those that are found now. Code without a file may be a trace's: `lua` is asked which one when
// the walk comes to it, and tells how to go on. `room`: for its memory.
Matched match_by_unwinding(LuaReader& lua, const NativeCode& functions, Unwinder& unwinder, const Modules& modules,
                           const LookMemory& look, Walked walked, std::vector<NativeFrame> room = {});

// What a frame of the stack is; of those that are no call, `state` is nullptr.
struct StackCall {
  const Activation* state = nullptr;
  const LuaWalk* walk = nullptr;
  std::size_t call = 0;  // index into walk->calls
  Address pc = 0;        // Lua: the next instruction
};

struct Joined {
  Matched from;
  Merged merged;
  std::vector<StackCall> calls;  // beside the frames of the stack, outermost first; they refer to `from`, also when it
                                 // is moved
};

// The calls of the states, as merge() takes them. They refer to `walked`.
std::vector<Segment> segments_of(const Walked& walked);

// `stopped`: what was read in the stop.
Joined join(LuaReader& lua, const NativeFunctions& functions, Matched matched, const MergeOptions& merging,
            const Memory& stopped);
// What the walks met, added to `quality`.
void judge(const Joined& joined, Quality& quality);
// The stack, outermost first. This may take symbols of a big program: nobody should stand still for
// it.
Stack name(LuaReader& lua, const NativeFunctions& functions, const Joined& joined, const Memory& stopped);

}  // namespace luaspy
