#include "base/mode.h"

#include <array>

namespace luaspy {

std::string_view name(Mode mode) {
  constexpr std::array<std::string_view, 4> names = {"merged", "lua", "native", "all"};
  return names[static_cast<std::size_t>(mode)];
}

bool shows(Mode mode, const Frame& frame) {
  if (mode == Mode::all || mode == Mode::native) return true;
  const bool outside = frame.kind == Frame::Kind::native || frame.kind == Frame::Kind::kernel;
  return frame.part == Frame::Part::program && (mode == Mode::merged || !outside);
}

// Mode::merged: the process has not come to main() yet.
Frame nothing_shown(Mode mode) { return marker(mode == Mode::lua ? "[outside of Lua]" : "[start of the process]"); }

void keep_shown(Mode mode, Stack& stack) {
  if (stack.empty()) return;
  std::erase_if(stack, [mode](const Frame& frame) { return !shows(mode, frame); });
  if (stack.empty()) stack.push_back(nothing_shown(mode));
}

}  // namespace luaspy
