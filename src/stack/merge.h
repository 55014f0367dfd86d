#pragma once
// Joins a thread's native frames and the Lua calls of the states that run on it into one stack.
// Pure: the result depends only on the arguments and on what NativeFunctions says about native
// functions.
//
//   native, innermost first           calls of the running state        merged
//     helper of str_gsub? no: leaf      C  string.gsub ─────────────┐     string.gsub
//     str_gsub ─── starts at entry ────────────────────────────────┘
//     luaD_call, luaD_precall: carry    Lua f      ┐
//     luaV_execute ──────────── owns ──▶ Lua g      │ down to the      f, g
//                                        (fresh)    ┘ first fresh one
//     lua_pcallk, luaD_…: carry
//     main                                                               main
//
// Each LuaJIT call records which C frame of the VM it runs in. The native frame at that C frame
// owns the call, or the trace's frame on top of it.

#include <vector>

#include "base/frame.h"
#include "luastate/native_functions.h"
#include "luastate/walk.h"

namespace luaspy {

struct MergeOptions {
  bool native_only = false;  // without the Lua calls
  bool traces = false;       // LuaJIT's machine code, inside the Lua functions that it runs, is part of the program
};

// The calls of one active state, and where its native frames end. If a state calls another one that
// calls the first one again, the first has several segments. Each continues its walk where the
// previous segment ended.
struct Segment {
  const LuaWalk* walk = nullptr;
  // The state's frames have a lower sp, except those outside of an unprotected call (see locate.h).
  Address boundary = 0;
};

struct MergedFrame {
  enum class Kind : std::uint8_t { native, call, left_out, not_joined } kind;
  std::size_t segment = 0, call = 0;  // call: an index into that segment's walk
  std::size_t native = no_native;  // native; call: the luaV_execute or C function frame that the call was paired with
  static constexpr std::size_t no_native = ~std::size_t{0};
  Frame::Part part = Frame::Part::program;  // native: program or vm
};

struct Merged {
  std::vector<MergedFrame> frames;      // innermost first
  std::vector<std::size_t> next_calls;  // by the first segment of each walk: the calls before are among the frames
  // Self-checks, counted over a run.
  int execute_frames = 0;    // native frames of the VM; LuaJIT's only if they own calls
  int fresh_calls = 0;       // calls marked as having entered one
  int unpaired_c_calls = 0;  // C functions without a native frame of their own
  // Lua calls, and the calls they made, that no luaV_execute runs yet or any more.
  int not_running = 0;
  bool joined = true;  // false: there were Lua calls, but no native frame that could own them
};

// `room`: a value no longer needed, whose memory is reused.
Merged merge(const std::vector<NativeFrame>& natives, const std::vector<Segment>& segments,
             const NativeFunctions& functions, const MergeOptions& options, Merged room = {});

}  // namespace luaspy
