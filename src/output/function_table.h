#pragma once
// The functions of a profile, told apart as describe() does it without lines: the ones that Profile::hottest() has.

#include <cstdint>
#include <string>
#include <vector>

#include "profile.h"

namespace luaspy {

struct FunctionTable {
  // Of `profile`, which has to outlive the table. With `lines`, each line of a function counts as one of its own.
  explicit FunctionTable(const Profile& profile, bool lines = false);

  struct Function {
    std::string text;               // describe()
    const Frame* frame = nullptr;   // the first one of it
  };
  std::vector<Function> functions;
  std::vector<std::uint32_t> of_frame;   // by FrameId
};

// Where in its file a frame is: the line being executed if that was recorded, else where the function is defined; 0 if neither is known.
inline int line_of(const Frame& frame) { return frame.line > 0 ? frame.line : frame.line_defined; }

}  // namespace luaspy
