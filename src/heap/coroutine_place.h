#pragma once
// Where a coroutine is: as numbers, which are compared, and as frames, which are shown.

#include <cstdint>
#include <vector>

#include "base/frame.h"
#include "luastate/coroutine.h"
#include "luastate/names.h"
#include "luastate/native_functions.h"

namespace luaspy {

// Two coroutines with equal signatures have the same frames. Compares numbers because getting names
// takes much longer.
using CoroutineSignature = std::vector<std::uint64_t>;
CoroutineSignature signature_of(const CoroutineLook& look);

struct CoroutineFrames {
  static constexpr std::size_t no_call = ~std::size_t{0};
  Stack stack;                       // outermost first; empty if it is dead or not started
  std::vector<std::size_t> call_of;  // by frame: index into the walk's calls; no_call: a marker
  // The function that it began with, and its line_defined as the line. An empty name: not known.
  Frame began;
};
CoroutineFrames frames_of(const CoroutineLook& look, Names& names, const NativeFunctions& functions,
                          const Names::Context& context);

}  // namespace luaspy
