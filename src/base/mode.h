#pragma once
// What of a stack is shown. A stack has all its frames, and each says which part of the program it
// is (Frame::Part); so this can be chosen again whenever a stack is shown. The flame graph page
// decides it in the same way (flamegraph/views.js).

#include <cstdint>
#include <string_view>

#include "base/frame.h"

namespace luaspy {

enum class Mode : std::uint8_t {
  merged,  // Lua and C as one stack, without the insides of the VM and the start of the process
  lua,     // Lua functions, and the C functions that they call
  native,  // native functions only: Lua is not even looked for
  all,     // everything
};

std::string_view name(Mode mode);

bool shows(Mode mode, const Frame& frame);

// The only frame of a stack that has none to show.
Frame nothing_shown(Mode mode);

// Removes what is not shown from a stack, outermost first, that is not empty.
void keep_shown(Mode mode, Stack& stack);

}  // namespace luaspy
