#pragma once
// Joins a thread's native frames and the Lua calls of the states that run on it into one stack.
// Pure: it decides by what it is given and by what NativeFunctions says about native functions.
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
// LuaJIT's calls say themselves which C frame of the VM they run in: its native frame, or the
// trace's on top of it, owns them.

#include <array>
#include <string_view>
#include <vector>

#include "base/frame.h"
#include "luastate/native_functions.h"
#include "luastate/walk.h"

namespace luaspy {

enum class Mode { merged, lua, native, all };

constexpr std::string_view name(Mode mode) {
  constexpr std::array<std::string_view, 4> names = {"merged", "lua", "native", "all"};
  return names[static_cast<std::size_t>(mode)];
}

struct MergeOptions {
  Mode mode = Mode::merged;
  bool traces = false;  // show the frames of LuaJIT's machine code, inside the Lua functions that it runs
};

// The calls of one active state, and where its native frames end. A state that calls another one
// that calls it again has several: each goes on in its walk where the one before has ended.
struct Segment {
  const LuaWalk* walk = nullptr;
  Address boundary = 0;  // sp of the frames of this state is below, but for what an unprotected call put outside (see
                         // locate.h)
};

struct MergedFrame {
  enum class Kind : std::uint8_t { native, call, left_out, not_joined } kind;
  std::size_t segment = 0, call = 0;  // call: an index into that segment's walk
  std::size_t native = no_native;     // native; call: the luaV_execute or C function frame that it was paired with
  static constexpr std::size_t no_native = ~std::size_t{0};
};

struct Merged {
  std::vector<MergedFrame> frames;  // innermost first
  // Self-checks, for the counters of a run.
  int execute_frames = 0;    // native frames of the VM, LuaJIT's only if they own calls
  int fresh_calls = 0;       // calls that say they entered one
  int unpaired_c_calls = 0;  // C functions without a native frame of their own
  int not_running = 0;       // Lua calls, and what they called, that no luaV_execute runs: not yet, or not any more
  bool joined = true;        // false: Lua calls were there, and no native frame that could own them
};

Merged merge(const std::vector<NativeFrame>& natives, const std::vector<Segment>& segments,
             const NativeFunctions& functions, const MergeOptions& options);

}  // namespace luaspy
