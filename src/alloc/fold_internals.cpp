#include "alloc/fold_internals.h"

#include <algorithm>
#include <span>

namespace luaspy {

void fold_internals(Stack& stack) {
  const auto is_internal = [&](const Frame& frame) {
    return frame.kind == Frame::Kind::native && is_place(frame) && frame.file == stack.back().file;
  };
  // The VM's own frames may lie between them.
  const auto asked = std::find_if(stack.rbegin(), stack.rend(), [&](const Frame& frame) {
    return frame.part == Frame::Part::program && !is_internal(frame);
  });
  if (asked == stack.rend() || (asked->kind != Frame::Kind::lua && asked->kind != Frame::Kind::c)) return;
  for (Frame& frame : std::span(asked.base(), stack.end())) frame.part = Frame::Part::vm;
}

}  // namespace luaspy
