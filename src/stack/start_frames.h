#pragma once
// The start of a process and of its threads: the same frames in every stack, which tell nothing.

#include <cstddef>
#include <optional>
#include <span>

#include "base/frame.h"

namespace luaspy {

struct StartFrames {
  std::size_t count = 0;          // the outermost frames that come before main(), or before the function of a thread
  bool main_has_no_name = false;  // the next frame is main(), without a symbol
  std::optional<std::size_t> interpreter;  // the frame of the interpreter lua (lua.c: pmain) before its script
};
// Of a stack, outermost first.
StartFrames start_frames(std::span<const Frame* const> stack);

}  // namespace luaspy
