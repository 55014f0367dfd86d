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
  // All of this follows from so many of the outermost frames; one more than there are: also from there being no more.
  std::size_t decided_by = 0;
};
// Of a stack, outermost first.
StartFrames start_frames(std::span<const Frame* const> stack);

}  // namespace luaspy
