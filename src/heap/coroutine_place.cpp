#include "heap/coroutine_place.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "luastate/call_frames.h"
#include "luastate/lua.h"

namespace luaspy {

CoroutineSignature signature_of(const CoroutineLook& look) {
  CoroutineSignature signature = {static_cast<std::uint64_t>(look.status),
                                  static_cast<std::uint64_t>(look.walk.left_out),
                                  look.began.is_lua() ? look.began.proto : look.began.key};
  for (const LuaCall& call : look.walk.calls) {
    const unsigned flags = unsigned{call.is_lua()} | unsigned{call.tail} << 1 | unsigned{call.gap} << 2 |
                           static_cast<unsigned>(call.inner) << 3;
    signature.push_back(call.is_lua() ? call.proto : call.key);
    signature.push_back(call.is_lua() ? call.saved_pc : 0);
    signature.push_back(flags);
  }
  return signature;
}

CoroutineFrames frames_of(const CoroutineLook& look, Names& names, const NativeFunctions& functions,
                          const Names::Context& context) {
  CoroutineFrames frames;
  const LuaWalk& walk = look.walk;
  for (std::size_t i = 0; i < walk.calls.size(); ++i) {
    if (walk.left_out != 0 && i == walk.cut_at) frames.stack.push_back(marker(left_out_text(walk, true)));
    const LuaCall& call = walk.calls[i];
    Frame frame = frame_of(label_call(names, functions, context, call, walk.caller_of(i), call.saved_pc), functions);
    // If an error ended the call, its position was in a LuaJIT C frame that no longer exists.
    if (context.lua.kind() == LuaKind::luajit && call.is_lua() && !call.has_pc(call.saved_pc)) frame.line = 0;
    frames.call_of.resize(frames.stack.size(), CoroutineFrames::no_call);
    frames.call_of.push_back(i);
    frames.stack.push_back(std::move(frame));
    std::ranges::copy(markers_outside(call), std::back_inserter(frames.stack));
  }
  frames.call_of.resize(frames.stack.size(), CoroutineFrames::no_call);
  std::ranges::reverse(frames.stack);
  std::ranges::reverse(frames.call_of);
  if (look.begun) {
    frames.began = frame_of(label_call(names, functions, context, look.began, nullptr, look.began.code), functions);
    frames.began.line = frames.began.line_defined;
  }
  return frames;
}

}  // namespace luaspy
