#include "base/frame.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/sample.h"

namespace luaspy {

Frame marker(std::string text) { return {Frame::Kind::marker, std::move(text), {}, 0, 0}; }

Frame state_marker(VmState state) { return marker(fmt::format("[{}]", name(state))); }

bool is_state_marker(const Frame& frame, VmState state) { return frame == state_marker(state); }

bool is_place(const Frame& frame) {
  return frame.name.starts_with(frame.file) &&
         (frame.name.size() == frame.file.size() || frame.name[frame.file.size()] == '+');
}

std::string describe(const Frame& frame, bool lines) {
  switch (frame.kind) {
    case Frame::Kind::lua: {
      const int line = lines ? frame.line : frame.line_defined;
      // Lua's own names of chunks are in parentheses already: "(command line)", "(load)".
      const bool has_own = frame.file.size() > 2 && frame.file.starts_with('(') && frame.file.ends_with(')') &&
                           frame.file.find(')') + 1 == frame.file.size();
      const std::string_view file = has_own ? std::string_view(frame.file).substr(1, frame.file.size() - 2)
                                            : std::string_view(frame.file);
      if (line <= 0) return fmt::format("{} ({})", frame.name, file);
      const std::string twin = frame.twin != 0 ? fmt::format("#{}", frame.twin) : std::string();
      return fmt::format("{} ({}:{}{}{})", frame.name, file, lines && frame.line_is_near ? "~" : "", line, twin);
    }
    case Frame::Kind::c:
      return frame.name + " [C]";
    case Frame::Kind::native:
      // A name that was derived from the module already contains it.
      return frame.file.empty() || is_place(frame) ? frame.name : fmt::format("{} ({})", frame.name, frame.file);
    case Frame::Kind::kernel:
      return frame.file.empty() ? frame.name : fmt::format("{} {}", frame.name, frame.file);
    case Frame::Kind::marker:
      break;
  }
  return frame.name;
}

}  // namespace luaspy
